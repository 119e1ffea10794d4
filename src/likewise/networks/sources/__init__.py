"""Where networks come from, one file per prefix: the zoo, timm, torchvision, transformers, a Python file."""
