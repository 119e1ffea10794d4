"""AutoAttack and its four attacks, one file each: APGD along two losses, FAB-T and Square."""
