"""Networks of images."""

import modules
import restoration
from rows import Network, detector, hf, image, pixels, random, timm, tokens, traced, vision

SWIN = dict(model_type="swin", embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24],
            out_features=["stage1", "stage2", "stage3", "stage4"])


def resnet(*stages):
    return dict(model_type="resnet", depths=[3, 4, 6, 3], layer_type="bottleneck",
                out_features=[f"stage{i}" for i in stages])


TRANSFORMERS = {
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
    "siglip": hf("Siglip", {"input_ids": tokens(8, 64), **pixels(8)}),
    "blip": hf("Blip", {"input_ids": tokens(8, 64), **pixels(8, 384)}, "ForImageTextRetrieval"),
    "groupvit": hf("GroupViT", {"input_ids": tokens(8, 77), **pixels(8)}),
    "sam": hf("SamVision", pixels(1, 512), image_size=512, num_hidden_layers=6, global_attn_indexes=[2, 5]),
    "detr": hf("Detr", pixels(1, 640), "ForObjectDetection", use_timm_backbone=False, use_pretrained_backbone=False,
               backbone=None, backbone_config=resnet(4)),
    "deformable_detr": hf("DeformableDetr", pixels(1, 512), "ForObjectDetection", use_timm_backbone=False,
                          use_pretrained_backbone=False, backbone=None, backbone_config=resnet(2, 3, 4)),
    "rt_detr": hf("RTDetr", pixels(1, 640), "ForObjectDetection"),
    "mask2former": hf("Mask2Former", pixels(1, 384), "ForUniversalSegmentation", backbone_config=SWIN),
    "vitdet": hf("VitDet", pixels(1, 512), image_size=512, num_hidden_layers=6, window_size=8,
                 window_block_indices=[0, 1, 3, 4], use_relative_position_embeddings=True),
    "dinov3": hf("DINOv3ViT", pixels(), image_size=224, hidden_size=768, num_attention_heads=12,
                 intermediate_size=3072),
}

TORCHVISION = {
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
    "fasterrcnn": detector("fasterrcnn_resnet50_fpn", 640, box_score_thresh=0.005),
    "ssdlite": detector("ssdlite320_mobilenet_v3_large", 320, score_thresh=0.005),
    "retinanet": detector("retinanet_resnet50_fpn", 640, score_thresh=0.005),
    "regnet": vision("regnet_y_8gf"),
    "mvit2": vision("video.mvit_v2_s", {"x": random(1, 3, 16, 224, 224)}),
}

TIMM = {
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
    "convmixer": timm("convmixer_768_32", image(4)),
    "ghostnet2": timm("ghostnetv2_100", image(16)),
    "hrnet": timm("hrnet_w18_small_v2", image(8)),
    "halonet": timm("halonet26t", image(8, 256)),
    "lambda": timm("lambda_resnet26t", image(8, 256)),
    "crossvit": timm("crossvit_9_240", image(16, 240)),
    "twins": timm("twins_svt_small", image(16)),
    "eva02": timm("eva02_small_patch14_224", image(8)),
    "davit": timm("davit_tiny", image(8)),
    "gcvit": timm("gcvit_xtiny", image(8)),
    "inception_next": timm("inception_next_tiny", image(8)),
    "starnet": timm("starnet_s2", image(16)),
    "mambaout": timm("mambaout_tiny", image(8)),
    "res2net": timm("res2net50_26w_4s", image(8)),
    "sequencer": timm("sequencer2d_s", image(8)),
    "resnest": timm("resnest26d", image(8)),
    "gmlp": timm("gmlp_s16_224", image(16)),
    "bilinear": traced(timm("bat_resnext26ts", image(8, 256))),
    "super_resolution": Network(restoration.DenseResidual, image(1, 128)),
    "style": Network(restoration.StyleGenerator, {"styles": random(4, 14, 512)}),
}

NETWORKS = {**TRANSFORMERS, **TORCHVISION, **TIMM}
