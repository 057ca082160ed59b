// Options and tables of `fp8-interventions`.
#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/shared/paper_training.h"
#include "experiments/shared/training.h"

namespace numsim::experiments::fp8_interventions {

std::vector<Option> Options() {
  return {
      // clang-format off
      {.name = "interventions",   .quick = "none,clip,qk-norm,layer-scale", .paper = "none,clip,qk-norm,layer-scale",
       .help = "interventions, separated by commas: clip, qk-norm, layer-scale, or several joined by '+'; none is always included", .small = "none,clip,qk-norm,layer-scale,qk-norm+layer-scale"},
      {.name = "formats",         .quick = "e4m3fn/e5m2,e3m2,e2m3", .paper = "e4m3fn/e5m2,bnb-e4m3/bnb-e5m2,e3m3:inf=none,nan=none,e4m2:inf=none,nan=none,e3m2,e2m3",
       .help = "formats FORWARD[/GRADIENT] of tensor-wise layers, separated by commas; bf16 is always included", .small = "e4m3fn/e5m2,bnb-e4m3/bnb-e5m2,e3m3:inf=none,nan=none,e4m2:inf=none,nan=none,e3m2,e2m3"},
      {.name = "model",           .quick = "clip",    .paper = "clip",     .help = "model to train: clip, vit or llama"},
      {.name = "captions",        .quick = "",        .paper = "",         .help = "clip: folder of images with captions; empty: generated shapes"},
      {.name = "shapes",          .quick = "4096",    .paper = "131072",   .help = "number of generated images, for training and validation", .small = "8192"},
      {.name = "image",           .quick = "16",      .paper = "64",       .help = "width and height of generated images in pixels, 16 to 64"},
      {.name = "text",            .quick = "",        .paper = "",         .help = "llama: UTF-8 file to train on; empty: generated text"},
      {.name = "text-size",       .quick = "1048576", .paper = "67108864", .help = "llama: bytes of generated text"},
      {.name = "layers",          .quick = "6",       .paper = "24",       .help = "blocks of the model; clip: of the image tower", .small = "12"},
      {.name = "text-layers",     .quick = "2",       .paper = "12",       .help = "clip: blocks of the text tower; 0: as many as --layers", .small = "4"},
      {.name = "width",           .quick = "32",      .paper = "1024",     .help = "width of the model", .small = "64"},
      {.name = "heads",           .quick = "1",       .paper = "16",       .help = "attention heads; must divide the width", .small = "2"},
      {.name = "patch",           .quick = "4",       .paper = "8",        .help = "width and height of a patch in pixels; must divide the image"},
      {.name = "context",         .quick = "64",      .paper = "2048",     .help = "llama: bytes per sequence"},
      {.name = "batch",           .quick = "32",      .paper = "4096",     .help = "examples per step"},
      {.name = "steps",           .quick = "300",     .paper = "20000",    .help = "training steps, 10 or more", .small = "600"},
      {.name = "lr",              .quick = "3e-3",    .paper = "2e-3",     .help = "peak learning rate", .small = "2e-3"},
      {.name = "warmup",          .quick = "60",      .paper = "5000",     .help = "steps of linear warm-up", .small = "120", .part_of = "steps"},
      {.name = "epsilon",         .quick = "1e-6",    .paper = "1e-6",     .help = "epsilon of the optimiser"},
      {.name = "beta2",           .quick = "0.99",    .paper = "0.99",     .help = "decay of v"},
      {.name = "weight-decay",    .quick = "0.2",     .paper = "0.2",      .help = "weight decay of matrices"},
      {.name = "clip-norm",       .quick = "1",       .paper = "1",        .help = "largest norm of gradients under the intervention clip"},
      {.name = "scaled-branches", .quick = "yes",     .paper = "yes",
       .help = "llama, captions: yes to initialise branches smaller by 1/sqrt(2 layers); yes or no"},
      {.name = "optimizer",       .quick = "stable-adamw", .paper = "stable-adamw", .help = "optimiser: stable-adamw, adamw or another of numsim train"},
      {.name = "final-lr",        .quick = "0",       .paper = "0",        .help = "learning rate at the end, over the peak: 0 to 1"},
      {.name = "patch-dropout",   .quick = "0.5",     .paper = "0.5",      .help = "clip: share of the patches that a training step leaves out, 0 to below 1"},
      {.name = "storage",         .quick = "bf16",    .paper = "bf16",     .help = "format of activations and gradients between operations; fp32: not rounded"},
      {.name = "plant-point",     .quick = "",        .paper = "",
       .help = "tensor names at which a massive activation is planted ('*' matches any characters; see docs/training.md); empty: none"},
      {.name = "plant-channel",   .quick = "3",       .paper = "3",        .help = "channel of the planted activation"},
      {.name = "plant-value",     .quick = "500",     .paper = "0",        .help = "value that is added to that channel"},
      {.name = "input-tail",      .quick = "0",       .paper = "0",        .help = "replace pixels x by sinh(tail x) / tail; 0: unchanged"},
      {.name = "stress-chosen-on", .quick = "",       .paper = "",         .help = "seeds on which planted value and tail were chosen, separated by commas; empty: not stated, so that the run is no evidence"},
      {.name = "diverged-above",  .quick = "2",       .paper = "2",
       .help = "a loss above this many times the first counts as divergence; 0: only one that is not finite"},
      {.name = "records",         .quick = "30",      .paper = "200",      .help = "minimum number of points per curve, 2 to --steps", .at_most = "steps"},
      {.name = "snapshots",       .quick = "10",      .paper = "50",       .help = "minimum number of steps at which features and quantised operands are measured, 1 to --steps", .at_most = "steps"},
      {.name = "valid-batches",   .quick = "8",       .paper = "8",        .help = "batches per validation"},
      // clang-format on
      KeysOption(),
  };
}

std::vector<PaperSetting> PaperSettings() {
  const std::vector<PaperSetting> others = {
      {"plant-point",
       "",
       "no such thing in the paper",
       "It makes small models fail; what is found with it is exploratory."},
      {"input-tail", "0", "no such thing in the paper", "As for --plant-point."},
      {"",
       "The paper's products are computed in float16 from fp8 values of bitsandbytes",
       "Section 2.3",
       "Here operands are OCP's E4M3 and E5M2, unless --formats has others, and activations are "
       "stored as --storage says."},
  };
  return PaperTraining(Paper::kSwitchBack, Options(), others);
}

std::vector<TableSpec> TableSpecs() {
  const Column intervention{"intervention",
                            "none, or parts joined by '+'; unstressed: none, and no stress"};
  const Column format{"format", "FORWARD[/GRADIENT] of tensor-wise layers; bf16: the baseline"};
  const Column seed{"seed", "seed of weights and batches"};
  return {
      {.name = std::string(kCurvesTable),
       .columns = {intervention,
                   format,
                   seed,
                   {"step", "steps taken"},
                   {"loss",
                    "mean training loss since the last record, nats; at step 0 the validation "
                    "loss"}}},
      {.name = std::string(kFinalTable),
       .columns = {intervention,
                   format,
                   seed,
                   {"status", "finished or diverged"},
                   {"steps", "steps taken"},
                   {"chance_loss",
                    "loss of a model that guesses at random, nats: log of the number of captions "
                    "in a batch, of classes, or of byte values"},
                   {"start_loss", "validation loss before training"},
                   {"train_loss", "mean training loss of the last 10 steps"},
                   {"valid_loss", "validation loss at the end; inf when diverged"},
                   {"zero_shot",
                    "share of images whose caption is found among all; nan if diverged or not a "
                    "CLIP"}}},
      {.name = std::string(kFeaturesTable),
       .columns = {intervention,
                   format,
                   seed,
                   {"step", "steps taken"},
                   {"valid_loss", "validation loss after these steps"},
                   {"tower", "image or text"},
                   {"block", "number of the block, from 0"},
                   {"mean_abs", "E|x_k| of the residual stream after the block"},
                   {"mean_abs_rest", "mean_abs without the planted channel"},
                   {"max_abs", "largest magnitude"}}},
      {.name = std::string(kQuantizedTable),
       .columns = {intervention,
                   format,
                   seed,
                   {"step", "steps taken before this one"},
                   {"operand", "X, W or G"},
                   {"underflow",
                    "share of elements that were not zero and became zero, mean over layers"},
                   {"underflow_worst", "underflow of the layer where it is largest"},
                   {"sqnr_db", "signal to quantisation noise ratio in dB, mean over layers"}}},
      {.name = std::string(kOutcomesTable),
       .derived = true,
       .columns =
           {intervention,
            format,
            {"seeds", "number of seeds"},
            {"diverged", "number of seeds that diverged"},
            {"collapsed", "number of other seeds whose loss is less than 5 % below chance_loss"},
            {"valid_loss", "mean over seeds, nats"},
            {"valid_loss_low", "95 % interval of valid_loss (Student's t); nan for one seed"},
            {"valid_loss_high", "95 % interval of valid_loss"},
            {"gap", "valid_loss minus that of bf16 with this intervention, paired by seed"},
            {"gap_low", "95 % interval of gap"},
            {"gap_high", "95 % interval of gap"},
            {"gap_none", "valid_loss minus that of bf16 without intervention, paired by seed"},
            {"gap_none_low", "95 % interval of gap_none"},
            {"gap_none_high", "95 % interval of gap_none"},
            {"zero_shot", "mean over the seeds that did not diverge"}}},
  };
}

}  // namespace numsim::experiments::fp8_interventions
