// The options that studies share: the one table of other names for keys of `numsim train`.
#include <algorithm>

#include "experiments/study/study.h"

namespace numsim::experiments::study {
namespace {

constexpr double kMillion = 1 << 20, kBytes16 = 1 << 16, kBelowOne = 1 - 1e-12;
constexpr bool kReal = false;

// Returns the models, with their data.
const std::vector<Choice>& Models() {
  static const std::vector<Choice> models = {
      {"clip",
       {"model.kind=clip", "data.kind=generated-shapes", "data.size=$shapes", "data.image=$image"}},
      {"vit",
       {"model.kind=vit",
        "model.patch_dropout=0",
        "data.kind=generated-images",
        "data.size=$shapes",
        "data.image=$image"}},
      {"llama",
       {"model.kind=llama",
        "model.patch_dropout=0",
        "data.kind=generated-text",
        "data.size=$text-size"}}};
  return models;
}

}  // namespace

Setting ModelSetting(const std::vector<std::string>& models) {
  Setting setting{.name = "model", .help = "model to train: ", .only_choices = true};
  for (const std::string& model : models) {
    setting.help += (model == models.front() ? "" : model == models.back() ? " or " : ", ") + model;
    setting.choices.push_back(*std::ranges::find(Models(), model, &Choice::name));
  }
  return setting;
}

const std::vector<Setting>& CommonSettings() {
  static const std::vector<Setting> settings = {
      // clang-format off
      {.name = "layers",        .help = "blocks of the model; clip: of the image tower", .keys = {"model.layers=$"}, .limits = Limits{1, 128}},
      {.name = "text-layers",   .help = "clip: blocks of the text tower; 0: as many as --layers", .keys = {"model.text_layers=$"}, .limits = Limits{0, 128}},
      {.name = "width",         .help = "width of the model", .keys = {"model.width=$"}, .limits = Limits{1, kBytes16}},
      {.name = "heads",         .help = "attention heads; must divide the width", .keys = {"model.heads=$"}, .limits = Limits{1, kBytes16}},
      {.name = "context",       .help = "llama: bytes per sequence", .keys = {"model.context=$"}, .limits = Limits{1, kMillion}},
      {.name = "patch",         .help = "clip, vit: width and height of a patch in pixels; must divide the image", .keys = {"model.patch=$"}, .limits = Limits{1, kBytes16}},
      {.name = "patch-dropout", .help = "clip: share of the patches that a training step leaves out, 0 to below 1", .keys = {"model.patch_dropout=$"}, .limits = Limits{0, kBelowOne, kReal}},
      {.name = "scaled-branches", .help = "llama, captions: yes to initialise branches smaller by 1/sqrt(2 layers); yes or no",
       .choices = {{"yes", {"model.scaled_branches=true"}}, {"no", {"model.scaled_branches=false"}}}, .only_choices = true},
      {.name = "batch",         .help = "examples per step", .keys = {"train.batch=$"}, .limits = Limits{1, kMillion}},
      {.name = "steps",         .help = "training steps, 10 or more", .keys = {"train.steps=$"}, .limits = Limits{10, kMostSteps}},
      {.name = "valid-batches", .help = "batches per validation", .keys = {"train.valid_batches=$"}, .limits = Limits{1, kMillion}},
      {.name = "diverged-above", .help = "a loss above this many times the first counts as divergence; 0: only one that is not finite", .keys = {"train.diverged_above=$"}, .limits = Limits{0, 1e9, kReal}},
      {.name = "lr",            .help = "peak learning rate", .keys = {"schedule.peak=$"}, .limits = Limits{1e-12, 100, kReal}},
      {.name = "warmup",        .help = "steps of linear warm-up", .keys = {"schedule.warmup=$"}, .limits = Limits{0, kMostSteps}, .part_of = "steps", .most = "steps"},
      {.name = "final-lr",      .help = "learning rate at the end, over the peak: 0 to 1", .keys = {"schedule.final=$"}, .limits = Limits{0, 1, kReal}},
      {.name = "optimizer",     .help = "optimiser: stable-adamw, adamw or another of numsim train", .keys = {"optimizer.kind=$"}},
      {.name = "epsilon",       .help = "epsilon of the optimiser", .keys = {"optimizer.epsilon=$"}, .limits = Limits{1e-30, 1, kReal}},
      {.name = "beta1",         .help = "decay of the first moment", .keys = {"optimizer.beta1=$"}, .limits = Limits{0, kBelowOne, kReal}},
      {.name = "beta2",         .help = "decay of v", .keys = {"optimizer.beta2=$"}, .limits = Limits{0, kBelowOne, kReal}},
      {.name = "weight-decay",  .help = "weight decay of matrices", .keys = {"optimizer.weight_decay=$"}, .limits = Limits{0, 100, kReal}},
      {.name = "clip",          .help = "largest norm of gradients; 0 disables clipping", .keys = {"optimizer.clip_norm=$"}, .limits = Limits{0, 1e9, kReal}},
      {.name = "storage",       .help = "format of activations and gradients between operations; fp32: not rounded", .keys = {"storage.activations=$", "storage.gradients=$"}},
      // Data: the model, which a study has its own row for, takes the sizes of its kind.
      {.name = "captions",      .help = "clip: folder of images .npy and captions.txt; empty: generated shapes", .choices = {{""}}, .keys = {"data.kind=captions", "data.path=$"}},
      {.name = "shapes",        .help = "clip: number of generated images, for training and validation", .limits = Limits{64, 1 << 24}},
      {.name = "image",         .help = "clip, vit: width and height of generated images in pixels, 16 to 64", .limits = Limits{16, 64}},
      {.name = "text",          .help = "llama: UTF-8 file to train on; empty: generated text", .choices = {{""}}, .keys = {"data.kind=text", "data.path=$"}},
      {.name = "text-size",     .help = "llama: bytes of generated text", .limits = Limits{1 << 14, 4294967296.0}},
      // Measurement.
      {.name = "records",       .help = "minimum number of points per curve, 2 to --steps", .limits = Limits{2, kMostSteps}, .at_most = "steps"},
      {.name = "validations",   .help = "validations during a training: at its end, after a half of its steps, a quarter, ...", .limits = Limits{1, kMostValidations}},
      {.name = "snapshots",     .help = "minimum number of steps at which tensors are measured, 1 to --steps", .limits = Limits{1, kMostSteps}, .at_most = "steps"},
      // clang-format on
  };
  return settings;
}

}  // namespace numsim::experiments::study
