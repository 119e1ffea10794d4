"""A zoo from timm: every network is shown the images by its makers' own transform, and all pairs are compared.

With random weights, so that it runs offline; leave `,pretrained=false` out for the published ones.

    python examples/timm_zoo.py [FOLDER]
"""

import sys

import torch

import likewise

NETWORKS = [
    f"timm:{name},pretrained=false" for name in ("test_resnet", "test_vit", "test_efficientnet", "test_convnext")
]

images = torch.rand(24, 3, 64, 64, generator=torch.Generator().manual_seed(0))  # or "photos", a folder of yours
probe = likewise.data.Data("noise", "image", images)
matrix = likewise.compare(NETWORKS, "cka-debiased", data=probe)
print(matrix)
print("alike ones side by side:", ", ".join(matrix.order()))
if len(sys.argv) > 1:
    matrix.plot(f"{sys.argv[1]}/zoo.png")
