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
    processor: str = ""  # of images


TEXT = "the a cat dog fish bird sat ran on in under mat house tree good bad film was is very not and or . , !"
WORDS = TEXT.split()
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


def _detr_sizes() -> dict[str, Any]:
    names = ("d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads")
    return {name: SIZES[name] for name in (*names, "encoder_ffn_dim", "decoder_ffn_dim")}


ARCHITECTURES: dict[Task, str] = {  # names here, and of classes in transformers
    "text": """
        bert BertModel, bert-masked BertForMaskedLM, albert AlbertModel, roberta RobertaModel,
        xlm-roberta XLMRobertaModel, distilbert DistilBertModel, electra ElectraModel, deberta DebertaModel,
        deberta-v2 DebertaV2Model, mpnet MPNetModel, modernbert ModernBertModel, roformer RoFormerModel,
        squeezebert SqueezeBertModel, convbert ConvBertModel, nystromformer NystromformerModel, fnet FNetModel,
        ernie ErnieModel, rembert RemBertModel, megatron-bert MegatronBertModel, xlnet XLNetModel,
        funnel FunnelModel, esm EsmModel, longformer LongformerModel
    """,
    "text decoder": """
        gpt2 GPT2LMHeadModel, gpt-neo GPTNeoModel, gpt-neox GPTNeoXForCausalLM, gptj GPTJModel, opt OPTModel,
        bloom BloomModel, llama LlamaForCausalLM, mistral MistralModel, mixtral MixtralModel,
        qwen2 Qwen2ForCausalLM, qwen3 Qwen3Model, gemma GemmaModel, gemma2 Gemma2Model, phi PhiModel,
        phi3 Phi3Model, falcon FalconModel, stablelm StableLmModel, olmo OlmoModel, olmo2 Olmo2Model,
        starcoder2 Starcoder2Model, codegen CodeGenModel, cohere CohereModel, granite GraniteModel,
        mpt MptModel, xglm XGLMModel, biogpt BioGptModel
    """,
    "state space": """
        mamba MambaForCausalLM, mamba2 Mamba2Model, falcon-mamba FalconMambaModel, rwkv RwkvModel
    """,
    "text classification": """
        bert-classifier BertForSequenceClassification, roberta-classifier RobertaForSequenceClassification,
        distilbert-classifier DistilBertForSequenceClassification,
        gpt2-classifier GPT2ForSequenceClassification, bart-classifier BartForSequenceClassification
    """,
    "encoder-decoder": """
        t5 T5ForConditionalGeneration, mt5 MT5Model, longt5 LongT5Model, bart BartForConditionalGeneration,
        mbart MBartModel, pegasus PegasusModel, marian MarianModel, m2m-100 M2M100Model,
        blenderbot BlenderbotModel
    """,
    "image": """
        vit ViTModel, vit-mae ViTMAEModel, vit-msn ViTMSNModel, beit BeitModel, dinov2 Dinov2Model,
        dinov2-registers Dinov2WithRegistersModel, dinov3-vit DINOv3ViTModel, ijepa IJepaModel,
        convnextv2 ConvNextV2Model, swin SwinModel, clip-vision CLIPVisionModel, siglip-vision SiglipVisionModel
    """,
    "image classification": """
        vit-classifier ViTForImageClassification, deit DeiTForImageClassification,
        convnext ConvNextForImageClassification, resnet ResNetForImageClassification,
        regnet RegNetForImageClassification, bit BitForImageClassification, swinv2 Swinv2ForImageClassification,
        mobilenet-v2 MobileNetV2ForImageClassification, mobilevit MobileViTForImageClassification,
        efficientnet EfficientNetForImageClassification, poolformer PoolFormerForImageClassification,
        pvt PvtForImageClassification, levit LevitForImageClassification, cvt CvtForImageClassification,
        focalnet FocalNetForImageClassification
    """,
    "detection": """
        detr DetrForObjectDetection, conditional-detr ConditionalDetrForObjectDetection,
        deformable-detr DeformableDetrForObjectDetection, table-transformer TableTransformerForObjectDetection,
        yolos YolosForObjectDetection, rt-detr RTDetrForObjectDetection
    """,
    "segmentation": """
        detr-panoptic DetrForSegmentation, segformer SegformerForSemanticSegmentation,
        beit-segmenter BeitForSemanticSegmentation, upernet UperNetForSemanticSegmentation,
        maskformer MaskFormerForInstanceSegmentation, mask2former Mask2FormerForUniversalSegmentation
    """,
    "two towers": """
        clip CLIPModel, siglip SiglipModel, chinese-clip ChineseCLIPModel, altclip AltCLIPModel,
        clipseg CLIPSegModel, metaclip-2 MetaClip2Model, blip BlipModel, align AlignModel
    """,
    "audio": """
        wav2vec2 Wav2Vec2Model, wav2vec2-layer-norm Wav2Vec2ForCTC, hubert HubertModel, wavlm WavLMModel,
        unispeech UniSpeechModel, sew SEWModel, data2vec-audio Data2VecAudioModel,
        whisper WhisperForConditionalGeneration, speech-to-text Speech2TextModel
    """,
    "audio classification": """
        wav2vec2-classifier Wav2Vec2ForSequenceClassification, ast ASTForAudioClassification
    """,
}
SIZES_OF: dict[str, dict[str, Any]] = {  # beside those all share
    "nystromformer": {"num_landmarks": 64, "segment_means_seq_len": 64},
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 16},
    "xlnet": {"d_inner": 64},
    "funnel": {"block_sizes": [1, 1], "num_decoder_layers": 1, "d_head": 8},
    "esm": {"position_embedding_type": "rotary"},
    "longformer": {"attention_window": 8},
    "gpt-neo": {"attention_types": [[["global"], 2]]},
    "mixtral": {"num_local_experts": 2},
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1},
    "rwkv": {"attention_hidden_size": 32},
    "vit-mae": {"mask_ratio": 0.0},
    "convnextv2": STAGES,
    "swin": HIERARCHY | {"depths": [1, 1], "num_heads": [1, 2]},
    "convnext": STAGES,
    "resnet": {**STAGES, "embedding_size": 8},
    "regnet": {**STAGES, "embedding_size": 8},
    "bit": {**STAGES, "embedding_size": 8, "num_groups": 4},
    "swinv2": {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4},
    "mobilenet-v2": {"depth_multiplier": 0.25},
    "mobilevit": {"hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 8, 8, 16, 16, 32], "patch_size": 2},
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320},
    "poolformer": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    "pvt": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]},
    "levit": {"image_size": 64, "hidden_sizes": [16, 16, 32], "num_attention_heads": [2, 2, 2], "depths": [1, 1, 1]}
    | {"patch_size": 16},
    "cvt": {"embed_dim": [8, 8, 16], "depth": [1, 2, 3], "num_heads": [1, 1, 2]},
    "focalnet": {"embed_dim": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "focal_levels": [1, 1], "patch_size": 4}
    | {"focal_windows": [3, 3]},
    "detr": DETR | OUT_OF_RESNET,
    "conditional-detr": DETR | OUT_OF_RESNET,
    "deformable-detr": DETR | MULTI_SCALE,
    "table-transformer": DETR | OUT_OF_RESNET,
    "yolos": {"image_size": [SIDE, SIDE], "num_detection_tokens": 5},
    "rt-detr": {
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
    "detr-panoptic": DETR
    | {"backbone_config": RESNET | {"out_features": ["stage1", "stage2", "stage3", "stage4"]}}
    | {"encoder_attention_heads": 8, "decoder_attention_heads": 8},
    "segformer": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]}
    | {"decoder_hidden_size": 16, "patch_sizes": [7, 3, 3, 3]},
    "beit-segmenter": {
        "num_hidden_layers": 4,
        "out_indices": [1, 2, 3, 4],
        "pool_scales": [1, 2],
        "auxiliary_channels": 8,
    },
    "upernet": {"backbone_config": SWIN, "hidden_size": 16, "auxiliary_channels": 8, "auxiliary_in_channels": 32}
    | {"pool_scales": [1, 2]},
    "maskformer": {
        "backbone_config": SWIN,
        "decoder_config": {"model_type": "detr", "num_queries": 5, **_detr_sizes()},
        "fpn_feature_size": 32,
        "mask_feature_size": 32,
    },
    "mask2former": {
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
    "clip": towers(),
    "siglip": towers(),
    "chinese-clip": towers(),
    "altclip": towers(text={"project_dim": 24}),
    "clipseg": towers(),
    "metaclip-2": towers(),
    "blip": towers(),
    "align": towers(vision={"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 32}),
    "wav2vec2": WAVES,
    "wav2vec2-layer-norm": WAVES | {"feat_extract_norm": "layer", "do_stable_layer_norm": True},
    "hubert": WAVES,
    "wavlm": WAVES,
    "unispeech": WAVES,
    "sew": WAVES | {"squeeze_factor": 2},
    "data2vec-audio": WAVES | {"conv_pos_kernel_size": 5},
    "whisper": {"num_mel_bins": 16, "max_source_positions": 50},
    "speech-to-text": {"input_feat_per_channel": 16, "conv_channels": 32},
    "wav2vec2-classifier": WAVES,
    "ast": {"num_mel_bins": 16, "max_length": 32, "frequency_stride": 8, "time_stride": 8},
}
PROCESSORS = {
    "dinov2-registers": "BitImageProcessor",
    "clip-vision": "CLIPImageProcessor",
    "siglip-vision": "SiglipImageProcessor",
}  # where transformers knows none
KINDS: dict[str, Tiny] = {
    name: Tiny(architecture, task, SIZES_OF.get(name, {}), PROCESSORS.get(name, ""))
    for task, table in ARCHITECTURES.items()
    for name, architecture in (entry.split() for entry in table.split(","))
}


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
    names = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    names |= set(inspect.signature(kind.__init__).parameters) | set(getattr(kind, "attribute_map", {}))
    shared = SIZES | {"vocab_size": vocabulary()} | special_tokens()
    aliases = getattr(kind, "attribute_map", {})
    arguments = {
        name: size
        for name, size in shared.items()
        if name == "num_labels" or (name in names and aliases.get(name) not in sizes)
    }
    if "decoder_start_token_id" in names:
        arguments["decoder_start_token_id"] = 2
    return kind(**arguments | dict(sizes))


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
