// Options and tables of `fp8-interventions`.
#include "experiments/fp8_interventions/fp8_interventions.h"

namespace numsim::experiments::fp8_interventions {

std::vector<Option> Options() {
  return {
      // clang-format off
      {.name = "interventions",   .quick = "none,clip,qk-norm,layer-scale", .paper = "none,clip,qk-norm,layer-scale",
       .help = "clip, qk-norm, layer-scale, joined by '+'; none is always there", .small = "none,clip,qk-norm,layer-scale,qk-norm+layer-scale"},
      {.name = "formats",         .quick = "e4m3fn/e5m2,e3m2,e2m3", .paper = "e4m3fn/e5m2,bnb-e4m3/bnb-e5m2,e3m3,e4m2,e3m2,e2m3",
       .help = "FORWARD[/GRADIENT] of tensor-wise layers; bf16 is always there", .small = "e4m3fn/e5m2,bnb-e4m3/bnb-e5m2,e3m3,e4m2,e3m2,e2m3"},
      {.name = "model",           .quick = "clip",    .paper = "clip",     .help = "clip, vit or llama"},
      {.name = "captions",        .quick = "",        .paper = "",         .help = "clip: a folder of images with captions; empty: generated shapes"},
      {.name = "shapes",          .quick = "4096",    .paper = "131072",   .help = "generated images, for training and validation", .small = "8192"},
      {.name = "image",           .quick = "16",      .paper = "64",       .help = "side of a generated image in pixels, 16 to 64"},
      {.name = "text",            .quick = "",        .paper = "",         .help = "llama: UTF-8 file to train on; empty: generated text"},
      {.name = "text-size",       .quick = "1048576", .paper = "67108864", .help = "llama: bytes of generated text"},
      {.name = "layers",          .quick = "6",       .paper = "24",       .help = "blocks; clip: of images", .small = "12"},
      {.name = "text-layers",     .quick = "2",       .paper = "12",       .help = "clip: blocks of captions; 0: --layers", .small = "4"},
      {.name = "width",           .quick = "32",      .paper = "1024",     .help = "width of the model", .small = "64"},
      {.name = "heads",           .quick = "1",       .paper = "16",       .help = "heads; divides width", .small = "2"},
      {.name = "patch",           .quick = "4",       .paper = "8",        .help = "side of a patch; divides image"},
      {.name = "context",         .quick = "64",      .paper = "2048",     .help = "llama: bytes of a sequence"},
      {.name = "batch",           .quick = "32",      .paper = "4096",     .help = "examples of a step"},
      {.name = "steps",           .quick = "300",     .paper = "20000",    .help = "steps of training, 10 at least", .small = "600"},
      {.name = "lr",              .quick = "3e-3",    .paper = "2e-3",     .help = "peak learning rate", .small = "2e-3"},
      {.name = "warmup",          .quick = "60",      .paper = "5000",     .help = "steps of linear warm-up", .small = "120"},
      {.name = "epsilon",         .quick = "1e-6",    .paper = "1e-6",     .help = "of AdamW"},
      {.name = "beta2",           .quick = "0.98",    .paper = "0.98",     .help = "decay of v"},
      {.name = "weight-decay",    .quick = "0.2",     .paper = "0.2",      .help = "of matrices"},
      {.name = "clip-norm",       .quick = "1",       .paper = "1",        .help = "largest norm of gradients under the intervention clip"},
      {.name = "scaled-branches", .quick = "yes",     .paper = "yes",
       .help = "llama, captions: whether branches begin 1/sqrt(2 layers) smaller; yes or no"},
      {.name = "plant-point",     .quick = "*blocks.0.mlp.down", .paper = "",
       .help = "points of a planted activation ('*' any characters; docs/training.md); empty: none"},
      {.name = "plant-channel",   .quick = "3",       .paper = "3",        .help = "its channel"},
      {.name = "plant-value",     .quick = "500",     .paper = "0",        .help = "what is added there"},
      {.name = "input-tail",      .quick = "0",       .paper = "0",        .help = "pixels x become sinh(tail x) / tail; 0: as they are"},
      {.name = "diverged-above",  .quick = "2",       .paper = "2",
       .help = "a loss of so many times the first is divergence; 0: only what is not finite"},
      {.name = "records",         .quick = "30",      .paper = "200",      .help = "points of a curve at least, 2 to --steps"},
      {.name = "snapshots",       .quick = "10",      .paper = "50",       .help = "times that quantised operands are measured at least, 1 to --steps"},
      {.name = "valid-batches",   .quick = "8",       .paper = "8",        .help = "batches of a validation"},
      // clang-format on
  };
}

std::vector<TableSpec> TableSpecs() {
  const Column intervention{"intervention", "none, or parts joined by '+'"};
  const Column format{"format", "FORWARD[/GRADIENT] of tensor-wise layers; bf16: the baseline"};
  const Column seed{"seed", "of weights and batches"};
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
                    "of a model that tells nothing apart, nats: log of the captions of a batch, of "
                    "the classes, of the bytes"},
                   {"start_loss", "validation loss before training"},
                   {"train_loss", "mean of the last 10 steps"},
                   {"valid_loss", "at the end; inf when diverged"},
                   {"zero_shot",
                    "share of images whose caption is found among all; nan: no CLIP"}}},
      {.name = std::string(kFeaturesTable),
       .columns = {intervention,
                   format,
                   seed,
                   {"when", "start or end of training"},
                   {"tower", "image or text"},
                   {"block", "from 0"},
                   {"mean_abs", "E|x_k| of the residual stream behind the block"},
                   {"mean_abs_rest", "the same without the planted channel"},
                   {"max_abs", "largest magnitude"}}},
      {.name = std::string(kQuantisedTable),
       .columns = {intervention,
                   format,
                   seed,
                   {"step", "steps taken before this one"},
                   {"operand", "X, W or G"},
                   {"underflow",
                    "share of the elements that became zero and were not, mean over layers"},
                   {"underflow_worst", "that of the layer where it is largest"},
                   {"sqnr_db", "signal to quantisation noise in dB, mean over layers"}}},
      {.name = std::string(kOutcomesTable),
       .derived = true,
       .columns = {intervention,
                   format,
                   {"seeds", ""},
                   {"diverged", "seeds that diverged"},
                   {"collapsed",
                    "seeds whose loss is less than 5 % below chance, without the diverged"},
                   {"valid_loss", "mean over seeds, nats"},
                   {"valid_loss_low", "95 % interval (Student's t); nan for one seed"},
                   {"valid_loss_high", ""},
                   {"gap", "valid_loss minus that of bf16 with this intervention, paired by seed"},
                   {"gap_low", "95 % interval"},
                   {"gap_high", ""},
                   {"gap_none", "valid_loss minus that of bf16 without intervention, so too"},
                   {"gap_none_low", "95 % interval"},
                   {"gap_none_high", ""},
                   {"zero_shot", "mean over the seeds that did not diverge"},
                   {"verdict", "stable, behind, unsteady, collapsed or diverged"}}},
  };
}

}  // namespace numsim::experiments::fp8_interventions
