"""Tiny random networks of transformers, one folder each, as `save_pretrained` writes them.

`save("bert", folder)` makes the folder that `hf:FOLDER` reads: weights drawn at random, a tokenizer of a few
words, an image processor or a feature extractor of the kind the architecture has. Nothing is downloaded.
`python -m tests.fuzz.tiny_transformers FOLDER` writes them all.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from likewise._base.optional import prepare_torchvision

Task = Literal[
    "text",
    "text decoder",
    "state space",
    "text classification",
    "encoder-decoder",
    "image",
    "image classification",
    "detection",
    "segmentation",
    "two towers",
    "audio",
    "audio classification",
]


@dataclass(frozen=True)
class Tiny:
    """One architecture: its class in transformers, what it does, and sizes beside those all share."""

    architecture: str
    task: Task
    sizes: Mapping[str, Any] = field(default_factory=dict)
    processor: str = ""  # of images, where transformers knows none for this configuration


WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "fish",
    "bird",
    "sat",
    "ran",
    "on",
    "in",
    "under",
    "mat",
    "house",
    "tree",
    "good",
    "bad",
    "film",
    "was",
    "is",
    "very",
    "not",
    "and",
    "or",
    ".",
    ",",
    "!",
]
SIDE = 32  # pixels of an image
# Sizes by every name that configurations have for them; each takes those it knows.
SIZES: dict[str, Any] = (
    dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size", "emb_dim"), 32)
    | dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers"), 2)
    | dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4)
    | dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4)
    | dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "hidden_dim"), 64)
    | dict.fromkeys(("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions"), 64)
    | {"num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "image_size": SIDE, "patch_size": 8, "rotary_dim": 8}
    | {"state_size": 8, "word_embed_proj_dim": 32, "num_labels": 3, "projection_dim": 24, "type_vocab_size": 2}
)
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}
RESNET = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]}
HIERARCHY = {"embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 2, 2], "window_size": 4, "patch_size": 2}
SWIN = {"model_type": "swin", "image_size": SIDE, "out_features": ["stage1", "stage2", "stage3", "stage4"], **HIERARCHY}
DETR = {"num_queries": 5, "use_timm_backbone": False}
OUT_OF_RESNET = {"backbone_config": RESNET | {"out_features": ["stage4"]}}
MULTI_SCALE = {"backbone_config": RESNET | {"out_features": ["stage2", "stage3", "stage4"]}}
TOWER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
WAVES = {
    "conv_dim": (16, 16, 16),
    "conv_stride": (5, 4, 4),
    "conv_kernel": (10, 8, 4),
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 4,
    "num_feat_extract_layers": 3,
}


def towers(vision: Mapping[str, Any] | None = None, text: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The sizes of a network of two towers."""
    image = {"image_size": SIDE, "patch_size": 8, "projection_dim": 24}
    words = {"vocab_size": vocabulary(), "max_position_embeddings": 64, "projection_dim": 24, **special_tokens()}
    return {"vision_config": TOWER | image | dict(vision or {}), "text_config": TOWER | words | dict(text or {})}


def vocabulary() -> int:
    """How many tokens there are."""
    return len(WORDS) + 4


def special_tokens() -> dict[str, int]:
    """The numbers of the tokens that are no words; the last one ends a text."""
    return {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": vocabulary() - 1}


def _kinds() -> dict[str, Tiny]:
    text = {
        "bert": Tiny("BertModel", "text"),
        "bert-masked": Tiny("BertForMaskedLM", "text"),
        "albert": Tiny("AlbertModel", "text"),
        "roberta": Tiny("RobertaModel", "text"),
        "xlm-roberta": Tiny("XLMRobertaModel", "text"),
        "distilbert": Tiny("DistilBertModel", "text"),
        "electra": Tiny("ElectraModel", "text"),
        "deberta": Tiny("DebertaModel", "text"),
        "deberta-v2": Tiny("DebertaV2Model", "text"),
        "mpnet": Tiny("MPNetModel", "text"),
        "modernbert": Tiny("ModernBertModel", "text"),
        "roformer": Tiny("RoFormerModel", "text"),
        "squeezebert": Tiny("SqueezeBertModel", "text"),
        "convbert": Tiny("ConvBertModel", "text"),
        "nystromformer": Tiny("NystromformerModel", "text", {"num_landmarks": 64, "segment_means_seq_len": 64}),
        "fnet": Tiny("FNetModel", "text"),
        "ernie": Tiny("ErnieModel", "text"),
        "rembert": Tiny("RemBertModel", "text", {"input_embedding_size": 16, "output_embedding_size": 16}),
        "megatron-bert": Tiny("MegatronBertModel", "text"),
        "xlnet": Tiny("XLNetModel", "text", {"d_inner": 64}),
        "funnel": Tiny("FunnelModel", "text", {"block_sizes": [1, 1], "num_decoder_layers": 1, "d_head": 8}),
        "esm": Tiny("EsmModel", "text", {"position_embedding_type": "rotary"}),
        "longformer": Tiny("LongformerModel", "text", {"attention_window": 8}),
        "bert-classifier": Tiny("BertForSequenceClassification", "text classification"),
        "roberta-classifier": Tiny("RobertaForSequenceClassification", "text classification"),
        "distilbert-classifier": Tiny("DistilBertForSequenceClassification", "text classification"),
        "gpt2-classifier": Tiny("GPT2ForSequenceClassification", "text classification"),
        "bart-classifier": Tiny("BartForSequenceClassification", "text classification"),
    }
    decoders = {
        "gpt2": Tiny("GPT2LMHeadModel", "text decoder"),
        "gpt-neo": Tiny("GPTNeoModel", "text decoder", {"attention_types": [[["global"], 2]]}),
        "gpt-neox": Tiny("GPTNeoXForCausalLM", "text decoder"),
        "gptj": Tiny("GPTJModel", "text decoder"),
        "opt": Tiny("OPTModel", "text decoder"),
        "bloom": Tiny("BloomModel", "text decoder"),
        "llama": Tiny("LlamaForCausalLM", "text decoder"),
        "mistral": Tiny("MistralModel", "text decoder"),
        "mixtral": Tiny("MixtralModel", "text decoder", {"num_local_experts": 2}),
        "qwen2": Tiny("Qwen2ForCausalLM", "text decoder"),
        "qwen3": Tiny("Qwen3Model", "text decoder"),
        "gemma": Tiny("GemmaModel", "text decoder"),
        "gemma2": Tiny("Gemma2Model", "text decoder"),
        "phi": Tiny("PhiModel", "text decoder"),
        "phi3": Tiny("Phi3Model", "text decoder"),
        "falcon": Tiny("FalconModel", "text decoder"),
        "stablelm": Tiny("StableLmModel", "text decoder"),
        "olmo": Tiny("OlmoModel", "text decoder"),
        "olmo2": Tiny("Olmo2Model", "text decoder"),
        "starcoder2": Tiny("Starcoder2Model", "text decoder"),
        "codegen": Tiny("CodeGenModel", "text decoder"),
        "cohere": Tiny("CohereModel", "text decoder"),
        "granite": Tiny("GraniteModel", "text decoder"),
        "mpt": Tiny("MptModel", "text decoder"),
        "xglm": Tiny("XGLMModel", "text decoder"),
        "biogpt": Tiny("BioGptModel", "text decoder"),
        "mamba": Tiny("MambaForCausalLM", "state space"),
        "mamba2": Tiny("Mamba2Model", "state space", {"num_heads": 8, "head_dim": 8, "n_groups": 1}),
        "falcon-mamba": Tiny("FalconMambaModel", "state space"),
        "rwkv": Tiny("RwkvModel", "state space", {"attention_hidden_size": 32}),
    }
    halves = {
        "t5": Tiny("T5ForConditionalGeneration", "encoder-decoder"),
        "mt5": Tiny("MT5Model", "encoder-decoder"),
        "longt5": Tiny("LongT5Model", "encoder-decoder"),
        "bart": Tiny("BartForConditionalGeneration", "encoder-decoder"),
        "mbart": Tiny("MBartModel", "encoder-decoder"),
        "pegasus": Tiny("PegasusModel", "encoder-decoder"),
        "marian": Tiny("MarianModel", "encoder-decoder"),
        "m2m-100": Tiny("M2M100Model", "encoder-decoder"),
        "blenderbot": Tiny("BlenderbotModel", "encoder-decoder"),
    }
    images = {
        "vit": Tiny("ViTModel", "image"),
        "vit-mae": Tiny("ViTMAEModel", "image", {"mask_ratio": 0.0}),
        "vit-msn": Tiny("ViTMSNModel", "image"),
        "beit": Tiny("BeitModel", "image"),
        "dinov2": Tiny("Dinov2Model", "image"),
        "dinov2-registers": Tiny("Dinov2WithRegistersModel", "image", processor="BitImageProcessor"),
        "dinov3-vit": Tiny("DINOv3ViTModel", "image"),
        "ijepa": Tiny("IJepaModel", "image"),
        "convnextv2": Tiny("ConvNextV2Model", "image", STAGES),
        "swin": Tiny("SwinModel", "image", HIERARCHY | {"depths": [1, 1], "num_heads": [1, 2]}),
        "clip-vision": Tiny("CLIPVisionModel", "image", processor="CLIPImageProcessor"),
        "siglip-vision": Tiny("SiglipVisionModel", "image", processor="SiglipImageProcessor"),
        "vit-classifier": Tiny("ViTForImageClassification", "image classification"),
        "deit": Tiny("DeiTForImageClassification", "image classification"),
        "convnext": Tiny("ConvNextForImageClassification", "image classification", STAGES),
        "resnet": Tiny("ResNetForImageClassification", "image classification", {**STAGES, "embedding_size": 8}),
        "regnet": Tiny("RegNetForImageClassification", "image classification", {**STAGES, "embedding_size": 8}),
        "bit": Tiny(
            "BitForImageClassification", "image classification", {**STAGES, "embedding_size": 8, "num_groups": 4}
        ),
        "swinv2": Tiny(
            "Swinv2ForImageClassification",
            "image classification",
            {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4},
        ),
        "mobilenet-v2": Tiny("MobileNetV2ForImageClassification", "image classification", {"depth_multiplier": 0.25}),
        "mobilevit": Tiny(
            "MobileViTForImageClassification",
            "image classification",
            {"hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 8, 8, 16, 16, 32], "patch_size": 2},
        ),
        "efficientnet": Tiny(
            "EfficientNetForImageClassification",
            "image classification",
            {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320},
        ),
        "poolformer": Tiny(
            "PoolFormerForImageClassification",
            "image classification",
            {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
        ),
        "pvt": Tiny(
            "PvtForImageClassification",
            "image classification",
            {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]},
        ),
        "levit": Tiny(
            "LevitForImageClassification",
            "image classification",
            {"image_size": 64, "hidden_sizes": [16, 16, 32], "num_attention_heads": [2, 2, 2], "depths": [1, 1, 1]}
            | {"patch_size": 16},
        ),
        "cvt": Tiny(
            "CvtForImageClassification",
            "image classification",
            {"embed_dim": [8, 8, 16], "depth": [1, 2, 3], "num_heads": [1, 1, 2]},
        ),
        "focalnet": Tiny(
            "FocalNetForImageClassification",
            "image classification",
            {"embed_dim": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "focal_levels": [1, 1], "patch_size": 4}
            | {"focal_windows": [3, 3]},
        ),
    }
    things = {
        "detr": Tiny("DetrForObjectDetection", "detection", DETR | OUT_OF_RESNET),
        "conditional-detr": Tiny("ConditionalDetrForObjectDetection", "detection", DETR | OUT_OF_RESNET),
        "deformable-detr": Tiny("DeformableDetrForObjectDetection", "detection", DETR | MULTI_SCALE),
        "table-transformer": Tiny("TableTransformerForObjectDetection", "detection", DETR | OUT_OF_RESNET),
        "yolos": Tiny("YolosForObjectDetection", "detection", {"image_size": [SIDE, SIDE], "num_detection_tokens": 5}),
        "rt-detr": Tiny(
            "RTDetrForObjectDetection",
            "detection",
            {
                "backbone_config": {
                    "model_type": "rt_detr_resnet",
                    "embedding_size": 8,
                    "hidden_sizes": [8, 8, 16, 16],
                    "depths": [1, 1, 1, 1],
                    "layer_type": "basic",
                    "out_features": ["stage2", "stage3", "stage4"],
                },
                "encoder_hidden_dim": 32,
                "encoder_in_channels": [8, 16, 16],
                "decoder_in_channels": [32, 32, 32],
                "num_queries": 5,
                "num_denoising": 0,
            },
        ),
        "detr-panoptic": Tiny(
            "DetrForSegmentation",
            "segmentation",
            DETR
            | {"backbone_config": RESNET | {"out_features": ["stage1", "stage2", "stage3", "stage4"]}}
            | {"encoder_attention_heads": 8, "decoder_attention_heads": 8},
        ),
        "segformer": Tiny(
            "SegformerForSemanticSegmentation",
            "segmentation",
            {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]}
            | {"decoder_hidden_size": 16, "patch_sizes": [7, 3, 3, 3]},
        ),
        "beit-segmenter": Tiny(
            "BeitForSemanticSegmentation",
            "segmentation",
            {"num_hidden_layers": 4, "out_indices": [1, 2, 3, 4], "pool_scales": [1, 2], "auxiliary_channels": 8},
        ),
        "upernet": Tiny(
            "UperNetForSemanticSegmentation",
            "segmentation",
            {"backbone_config": SWIN, "hidden_size": 16, "auxiliary_channels": 8, "auxiliary_in_channels": 32}
            | {"pool_scales": [1, 2]},
        ),
        "maskformer": Tiny(
            "MaskFormerForInstanceSegmentation",
            "segmentation",
            {
                "backbone_config": SWIN,
                "decoder_config": {"model_type": "detr", "num_queries": 5, **_detr_sizes()},
                "fpn_feature_size": 32,
                "mask_feature_size": 32,
            },
        ),
        "mask2former": Tiny(
            "Mask2FormerForUniversalSegmentation",
            "segmentation",
            {
                "backbone_config": SWIN,
                "feature_size": 32,
                "mask_feature_size": 32,
                "hidden_dim": 32,
                "encoder_feedforward_dim": 64,
                "dim_feedforward": 64,
                "num_queries": 5,
                "num_attention_heads": 4,
                "decoder_layers": 3,
            },
        ),
    }
    pairs = {
        "clip": Tiny("CLIPModel", "two towers", towers()),
        "siglip": Tiny("SiglipModel", "two towers", towers()),
        "chinese-clip": Tiny("ChineseCLIPModel", "two towers", towers()),
        "altclip": Tiny("AltCLIPModel", "two towers", towers(text={"project_dim": 24})),
        "clipseg": Tiny("CLIPSegModel", "two towers", towers()),
        "metaclip-2": Tiny("MetaClip2Model", "two towers", towers()),
        "blip": Tiny("BlipModel", "two towers", towers()),
        "align": Tiny(
            "AlignModel",
            "two towers",
            towers(vision={"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 32}),
        ),
    }
    audio = {
        "wav2vec2": Tiny("Wav2Vec2Model", "audio", WAVES),
        "wav2vec2-layer-norm": Tiny(
            "Wav2Vec2ForCTC", "audio", WAVES | {"feat_extract_norm": "layer", "do_stable_layer_norm": True}
        ),
        "hubert": Tiny("HubertModel", "audio", WAVES),
        "wavlm": Tiny("WavLMModel", "audio", WAVES),
        "unispeech": Tiny("UniSpeechModel", "audio", WAVES),
        "sew": Tiny("SEWModel", "audio", WAVES | {"squeeze_factor": 2}),
        "data2vec-audio": Tiny("Data2VecAudioModel", "audio", WAVES | {"conv_pos_kernel_size": 5}),
        "whisper": Tiny("WhisperForConditionalGeneration", "audio", {"num_mel_bins": 16, "max_source_positions": 50}),
        "speech-to-text": Tiny("Speech2TextModel", "audio", {"input_feat_per_channel": 16, "conv_channels": 32}),
        "wav2vec2-classifier": Tiny("Wav2Vec2ForSequenceClassification", "audio classification", WAVES),
        "ast": Tiny(
            "ASTForAudioClassification",
            "audio classification",
            {"num_mel_bins": 16, "max_length": 32, "frequency_stride": 8, "time_stride": 8},
        ),
    }
    return text | decoders | halves | images | things | pairs | audio


def _detr_sizes() -> dict[str, Any]:
    names = ("d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads")
    return {name: SIZES[name] for name in (*names, "encoder_ffn_dim", "decoder_ffn_dim")}


KINDS: dict[str, Tiny] = _kinds()


def save(kind: str, folder: Path) -> None:
    """Write one of `KINDS` into a folder: config, weights, and tokenizer, processor or extractor."""
    tiny = KINDS[kind]
    network = build(kind)
    network.save_pretrained(folder)
    if tiny.task in ("text", "text classification", "text decoder", "state space", "encoder-decoder", "two towers"):
        tokenizer().save_pretrained(folder)
    if tiny.task.startswith("audio"):
        extractor(network.config).save_pretrained(folder)
    if tiny.task.startswith("image") or tiny.task in ("detection", "segmentation", "two towers"):
        processor(network.config, tiny.processor).save_pretrained(folder)


def build(kind: str) -> Any:
    """The network itself, in evaluation mode, its weights drawn from a fixed seed."""
    transformers, tiny = _transformers(), KINDS[kind]
    architecture = getattr(transformers, tiny.architecture)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return architecture(config(architecture.config_class, tiny.sizes)).eval()


def config(kind: Any, sizes: Mapping[str, Any]) -> Any:
    """A configuration of one class with the sizes it knows, and those that are its own."""
    known = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    known |= set(inspect.signature(kind.__init__).parameters) | set(getattr(kind, "attribute_map", {}))
    shared = SIZES | {"vocab_size": vocabulary()} | special_tokens()
    aliases = getattr(kind, "attribute_map", {})
    wanted = {
        name: size
        for name, size in shared.items()
        if name == "num_labels" or (name in known and aliases.get(name) not in sizes)
    }
    if "decoder_start_token_id" in known:
        wanted["decoder_start_token_id"] = 2
    return kind(**wanted | dict(sizes))


def tokenizer() -> Any:
    """A tokenizer of a few words: `[CLS] the cat [SEP]`, padding on the right."""
    import tokenizers

    words = ["[PAD]", "[UNK]", "[CLS]", *WORDS, "[SEP]"]
    ids = {word: number for number, word in enumerate(words)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    ends = {"bos_token": "[CLS]", "eos_token": "[SEP]"}
    kind = _transformers().PreTrainedTokenizerFast
    return kind(tokenizer_object=made, model_max_length=64, **names, **ends)


def processor(config: Any, name: str = "") -> Any:
    """The image processor of an architecture, or the one named, for small images."""
    transformers = _transformers()
    mapping = transformers.models.auto.image_processing_auto.IMAGE_PROCESSOR_MAPPING
    made = (getattr(transformers, name) if name else mapping[type(config)]["torchvision"])()
    side = getattr(config, "image_size", SIDE)
    side = side if isinstance(side, int) else SIDE
    sizes = {"height": side, "width": side, "shortest_edge": side, "longest_edge": 2 * side}
    for name in ("size", "crop_size"):
        given = getattr(made, name, None)
        if given is not None:
            setattr(made, name, type(given)(**{key: sizes[key] for key in dict(given) if dict(given)[key] is not None}))
    return made


def extractor(config: Any) -> Any:
    """The feature extractor of an architecture of audio, for short sounds."""
    transformers = _transformers()
    if config.model_type == "whisper":
        return transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
    if config.model_type == "audio-spectrogram-transformer":
        return transformers.ASTFeatureExtractor(num_mel_bins=16, max_length=32)
    if config.model_type == "speech_to_text":
        return transformers.Speech2TextFeatureExtractor(feature_size=16, num_mel_bins=16)
    masked = getattr(config, "feat_extract_norm", "") == "layer"
    return transformers.Wav2Vec2FeatureExtractor(return_attention_mask=masked)


def _transformers() -> Any:
    prepare_torchvision()
    import transformers

    return transformers


if __name__ == "__main__":
    for kind in KINDS:
        save(kind, Path(sys.argv[1]) / kind)
