"""Networks of sound, video, series, points, graphs and diffusion."""

import diffusion
import geometry
import modules
import sequences
from rows import Network, hf, indices, ones, random, sound, tokens, traced

SOUND = {
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
    "sew": hf("SEW", sound(), num_hidden_layers=6),
    "bert_conformer": hf("Wav2Vec2Bert", {"input_features": random(1, 500, 160)}, num_hidden_layers=6,
                         conv_depthwise_kernel_size=31),
    "speech_to_text": hf("Speech2Text", {"input_features": random(2, 1000, 80), "decoder_input_ids": tokens(2, 64)},
                         vocab_size=32000, encoder_layers=6),
    "moonshine": hf("Moonshine", {"input_values": random(1, 80000), "decoder_input_ids": tokens(1, 64)},
                    vocab_size=32768),
    "encodec": traced(hf("Encodec", {"input_values": random(1, 1, 48000)})),
    "dac": hf("Dac", {"input_values": random(1, 1, 32000)}),
    "speecht5": hf("SpeechT5", {"input_values": sound()["input_values"], "decoder_input_ids": tokens(1, 64, 80)},
                   "ForSpeechToText", encoder_layers=6, decoder_layers=4),
    "univnet": hf("UnivNet", {"input_features": random(1, 200, 100), "noise_sequence": random(1, 200, 64)}),
    "fastspeech": Network(sequences.FastSpeech, {"tokens": tokens(4, 128, 80)}),
    "tacotron": Network(sequences.Tacotron, {"tokens": tokens(4, 96, 80), "frames": random(4, 24, 80)}),
    "wavenet": Network(sequences.WaveNet, {"x": random(1, 64, 16000)}),
    "vjepa": hf("VJEPA2", {"pixel_values_videos": random(1, 16, 3, 256, 256)}, num_hidden_layers=4,
                pred_num_hidden_layers=2),
}

SERIES_AND_POINTS = {
    "patchtsmixer": hf("PatchTSMixer", {"past_values": random(32, 512, 7)}, "ForPrediction", num_input_channels=7,
                       context_length=512, patch_length=16, patch_stride=8, prediction_length=96, d_model=128),
    "convolutions_in_time": Network(sequences.CausalConvolutions, {"x": random(16, 64, 1024)}),
    "convolutional_lstm": Network(sequences.ConvolutionalLstm, {"x": random(4, 8, 16, 64, 64)}),
    "text_recognition": Network(sequences.TextRecognition, {"x": random(16, 1, 32, 256)}),
    "graph": Network(geometry.GraphNetwork, {"nodes": random(4096, 128), "edges": random(32768, 64),
                                             "ends": indices(2, 32768, 4096)}),
    "graph_attention": Network(geometry.GraphAttention, {"nodes": random(4096, 256), "ends": indices(2, 32768, 4096)}),
    "pointnet": Network(geometry.PointNet, {"x": random(16, 3, 2048)}),
    "point_neighbours": Network(geometry.PointNeighbours, {"x": random(8, 3, 1024)}),
    "radiance": Network(geometry.RadianceField, {"rays": random(1024, 6), "depths": random(1024, 64)}),
    "unet3d": Network(geometry.VolumeUNet, {"x": random(1, 1, 64, 96, 96)}),
    "recommender": Network(geometry.Recommender, {"dense": random(2048, 13), "sparse": indices(2048, 26, 10000)}),
    "decision": hf("DecisionTransformer", {"states": random(16, 64, 17), "actions": random(16, 64, 4),
                                           "rewards": random(16, 64, 1), "returns_to_go": random(16, 64, 1),
                                           "timesteps": indices(16, 64, 1000), "attention_mask": ones(16, 64)},
                   hidden_size=512, n_head=8, n_layer=6),
}

DIFFUSION = {
    "unet": Network(modules.DiffusionUNet, {"x": random(2, 4, 64, 64), "time": random(2), "text": random(2, 77, 768)}),
    "decoder": Network(modules.LatentDecoder, {"x": random(1, 4, 64, 64), "time": random(1, 8)}),
    "dit": Network(diffusion.Transformer, {"x": random(4, 4, 32, 32), "time": random(4),
                                           "labels": indices(4, 1, 1000)}),
    "joint_dit": Network(diffusion.JointTransformer, {"x": random(1, 16, 64, 64), "text": random(1, 333, 1536),
                                                      "time": random(1), "pooled": random(1, 2048)}),
    "single_dit": Network(diffusion.SingleStream, {"x": random(1, 1024, 64), "text": random(1, 256, 4096),
                                                   "time": random(1), "pooled": random(1, 768)}),
    "linear_dit": Network(diffusion.LinearTransformer, {"x": random(1, 32, 32, 32), "text": random(1, 300, 2304),
                                                        "time": random(1)}),
}

NETWORKS = {**SOUND, **SERIES_AND_POINTS, **DIFFUSION}
