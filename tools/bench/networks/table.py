"""Networks by name, in the sizes of their authors."""

import typing

import torch

import modules


class Network(typing.NamedTuple):
    """A function that makes the module, those that make its inputs on a device, and how it is exported."""

    make: typing.Callable
    inputs: dict
    traced: bool = False  # by the exporter that traces, whose files have sizes that depend on data
    half: bool = True  # in fp16


def random(*shape):
    return lambda device: torch.randn(*shape, device=device, dtype=torch.float16)


def tokens(batch, count, vocabulary=20000):
    return lambda device: torch.randint(3, vocabulary, (batch, count), device=device)


def ones(batch, count):
    return lambda device: torch.ones(batch, count, dtype=torch.long, device=device)


def text(batch=8, count=256):
    return {"input_ids": tokens(batch, count), "attention_mask": ones(batch, count)}


def prompt(count=1024, batch=1):
    return {"input_ids": tokens(batch, count)}


def pixels(batch=8, size=224):
    return {"pixel_values": random(batch, 3, size, size)}


def image(batch=8, size=224):
    return {"x": random(batch, 3, size, size)}


def pair(batch=4, count=256, outputs=64):
    return {"input_ids": tokens(batch, count), "decoder_input_ids": tokens(batch, outputs)}


def sound():
    return {"input_values": random(1, 160000)}


def hf(name, inputs, kind="Model", config=None, **options):
    """A class of the Transformers library with the options of its configuration."""

    def make():
        import transformers

        return getattr(transformers, name + kind)(getattr(transformers, (config or name) + "Config")(**options))

    return Network(make, inputs)


def traced(network):
    return network._replace(traced=True)


def vision(name, inputs=None, **options):
    """A model of torchvision."""

    def make():
        import torchvision.models

        function = torchvision.models
        for part in name.split("."):
            function = getattr(function, part)
        return function(weights=None, **options)

    return Network(make, inputs or image())


def detector(name, size, **options):
    """A detector of torchvision in fp32, with scores low enough that it finds as much as it returns at most."""

    def make():
        import torchvision.models.detection

        network = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, **options)
        return modules.Detector(network.eval())

    return Network(make, {"x": lambda device: torch.rand(1, 3, size, size, device=device)}, traced=True, half=False)


def timm(name, inputs):
    def make():
        import timm as library

        return library.create_model(name, pretrained=False)

    return Network(make, inputs)


BASE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
SMALL = dict(hidden_size=1024, num_hidden_layers=8, num_attention_heads=16)
CAUSAL = "ForCausalLM"
CODER = dict(encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072,
             d_model=768)

NETWORKS = {
    # Encoders of text.
    "distilbert": hf("DistilBert", text()),
    "albert": hf("Albert", text(), hidden_size=768, num_attention_heads=12, intermediate_size=3072),
    "deberta2": hf("DebertaV2", text(4), relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=256,
                   norm_rel_ebd="layer_norm", share_att_key=True, **BASE),
    "mpnet": hf("MPNet", text()),
    "xlnet": hf("XLNet", prompt(256, 4), d_model=768, n_layer=12, n_head=12, d_inner=3072),
    "convbert": hf("ConvBert", text()),
    "mobilebert": hf("MobileBert", text()),
    "roformer": hf("RoFormer", text()),
    "modernbert": hf("ModernBert", text(4, 1024)),
    "squeezebert": hf("SqueezeBert", text()),
    "nystrom": hf("Nystromformer", text(8, 512), max_position_embeddings=520),
    # Decoders.
    "opt": hf("OPT", prompt(), CAUSAL, ffn_dim=3072, hidden_size=768, num_attention_heads=12, num_hidden_layers=12),
    "bloom": hf("Bloom", prompt(), CAUSAL, vocab_size=50000, hidden_size=1024, n_layer=12, n_head=16),
    "gptneox": hf("GPTNeoX", prompt(), CAUSAL, **BASE),
    "gptneo": hf("GPTNeo", prompt(), CAUSAL, hidden_size=768, num_layers=12, num_heads=12,
                 attention_types=[[["global", "local"], 6]]),
    "falcon": hf("Falcon", prompt(), CAUSAL, vocab_size=32000, **SMALL),
    "gemma3": hf("Gemma3", prompt(2048), CAUSAL, "Gemma3Text", hidden_size=1152, intermediate_size=6912,
                 num_hidden_layers=12, num_attention_heads=4, num_key_value_heads=1, head_dim=256, sliding_window=512,
                 vocab_size=32000),
    "phi": hf("Phi", prompt(), CAUSAL, intermediate_size=4096, **SMALL),
    "olmo2": hf("Olmo2", prompt(), CAUSAL, intermediate_size=4096, vocab_size=32000, **SMALL),
    "mamba": hf("Mamba", prompt(64), CAUSAL, num_hidden_layers=4),
    # Both.
    "t5": hf("T5", pair(), "ForConditionalGeneration", d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12),
    "bart": hf("Bart", pair(), encoder_layers=6, decoder_layers=6, **CODER),
    "whisper": hf("Whisper", {"input_features": random(1, 80, 3000), "decoder_input_ids": tokens(1, 64)},
                  encoder_layers=12, decoder_layers=12, **CODER),
    # A mixture of experts whose tokens are picked by NonZero.
    "switch": traced(hf("SwitchTransformers", {"input_ids": tokens(4, 256)}, "EncoderModel", num_experts=8)),
    # Images.
    "beit": hf("Beit", pixels(), use_relative_position_bias=True),
    "dinov2": hf("Dinov2", pixels(8, 518), image_size=518, patch_size=14),
    "swinv2": hf("Swinv2", pixels(8, 256), image_size=256, window_size=8),
    "convnextv2": hf("ConvNextV2", pixels(16)),
    "segformer": hf("Segformer", pixels(4, 512), "ForSemanticSegmentation"),
    "mobilevit": hf("MobileViT", pixels(8, 256)),
    "poolformer": hf("PoolFormer", pixels(16)),
    "pvtv2": hf("PvtV2", pixels(16)),
    "levit": hf("Levit", pixels(32)),
    "cvt": hf("Cvt", pixels(16)),
    "focalnet": hf("FocalNet", pixels(16)),
    "hiera": hf("Hiera", pixels()),
    "yolos": hf("Yolos", pixels(1, 512), "ForObjectDetection", image_size=[512, 512], hidden_size=384,
                num_attention_heads=6, intermediate_size=1536),
    "dpt": hf("DPT", pixels(2, 384), "ForDepthEstimation"),
    "depth_anything": hf("DepthAnything", pixels(1, 518), "ForDepthEstimation"),
    "clip": hf("CLIP", {"input_ids": tokens(8, 77), **pixels()}),
    "upernet": hf("UperNet", pixels(1, 512), "ForSemanticSegmentation"),
    "densenet121": vision("densenet121"),
    "inception3": vision("inception_v3", image(8, 299), init_weights=False, aux_logits=False),
    "vgg16": vision("vgg16"),
    "shufflenet": vision("shufflenet_v2_x1_0", image(16)),
    "efficientnet_v2": vision("efficientnet_v2_s", image(16)),
    "maxvit": vision("maxvit_t"),
    "deeplab": vision("segmentation.deeplabv3_resnet50", image(2, 512), weights_backbone=None),
    "lraspp": vision("segmentation.lraspp_mobilenet_v3_large", image(2, 512), weights_backbone=None),
    "mobilenetv3": vision("mobilenet_v3_large", image(32)),
    "resnext": vision("resnext50_32x4d", image(16)),
    "r3d": vision("video.r3d_18", {"x": random(1, 3, 16, 112, 112)}),
    "swin3d": vision("video.swin3d_t", {"x": random(1, 3, 16, 224, 224)}),
    "xcit": timm("xcit_tiny_12_p16_224", image(16)),
    "coat": timm("coat_lite_tiny", image(16)),
    "edgenext": timm("edgenext_small", image(16, 256)),
    "fastvit": timm("fastvit_t8", image(16, 256)),
    "repvit": timm("repvit_m1", image(16)),
    "efficientvit": timm("efficientvit_b1", image(16)),
    "nfnet": timm("nf_resnet50", image(16)),
    "gcresnet": timm("gcresnet50t", image()),
    "botnet": timm("botnet26t_256", image(8, 256)),
    "volo": timm("volo_d1_224", image()),
    "mixer": Network(modules.Mixer, image(16)),
    "fasterrcnn": detector("fasterrcnn_resnet50_fpn", 640, box_score_thresh=0.005),
    "ssdlite": detector("ssdlite320_mobilenet_v3_large", 320, score_thresh=0.005),
    # Sound and video.
    "wav2vec2": hf("Wav2Vec2", sound(), "ForCTC"),
    "wavlm": hf("WavLM", sound()),
    "conformer": hf("Wav2Vec2Conformer", sound(), "ForCTC", vocab_size=32, position_embeddings_type="relative"),
    "ast": hf("AST", {"input_values": random(2, 1024, 128)}),
    "hifigan": hf("SpeechT5", {"spectrogram": random(1, 400, 80)}, "HifiGan", "SpeechT5HifiGan"),
    "vits": traced(hf("Vits", {"input_ids": tokens(1, 60, 38)}, use_stochastic_duration_prediction=False)),
    "videomae": hf("VideoMAE", {"pixel_values": random(1, 16, 3, 224, 224)}),
    "timesformer": hf("Timesformer", {"pixel_values": random(1, 8, 3, 224, 224)}),
    "patchtst": hf("PatchTST", {"past_values": random(32, 512, 7)}, "ForPrediction", num_input_channels=7,
                   context_length=512, patch_length=16, patch_stride=8, prediction_length=96),
    "temporal": Network(modules.TemporalConvolutions, {"x": random(2, 512, 1600)}),
    # Diffusion.
    "unet": Network(modules.DiffusionUNet, {"x": random(2, 4, 64, 64), "time": random(2), "text": random(2, 77, 768)}),
    "decoder": Network(modules.LatentDecoder, {"x": random(1, 4, 64, 64), "time": random(1, 8)}),
}
