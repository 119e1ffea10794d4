"""Language models larger than memory: `blocks` passes texts block by block, `weights` loads, `layers` looks."""
