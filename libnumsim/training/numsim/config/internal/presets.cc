// Presets: named configurations, written as TOML like users' files.
#include <fmt/format.h>

#include <array>

#include "numsim/base/nearest_name.h"
#include "numsim/config/config.h"

namespace numsim {
namespace {

struct PresetRow {
  TrainPreset preset;
  std::string_view toml;
};

constexpr PresetRow kRows[] = {
    {{"tiny",
      "llama with 2 layers on generated text; takes seconds; for a first look and for tests"},
     R"(
[model]
kind = "llama"
layers = 2
width = 32
heads = 2
context = 32
[linear]
high_precision = "fp32"
[schedule]
peak = 3e-3
warmup = 10
[optimizer]
clip_norm = 1.0
[data]
kind = "generated-text"
size = 65536
[train]
steps = 100
batch = 8
valid_every = 25
valid_batches = 4
[telemetry]
tensors_every = 25
[checkpoint]
every = 50
)"},
    {{"small", "llama with 4 layers of width 256 on generated text; takes minutes on two cores"},
     R"(
[model]
kind = "llama"
layers = 4
width = 256
heads = 4
context = 128
[linear]
high_precision = "fp32"
[schedule]
peak = 1e-3
warmup = 50
[optimizer]
clip_norm = 1.0
[data]
kind = "generated-text"
size = 4194304
[train]
steps = 500
batch = 16
valid_every = 100
valid_batches = 8
)"},
    {{"shakespeare",
      "llama for tinyshakespeare (set data.path); below 2 nats per byte in ten minutes on two "
      "cores"},
     R"(
[model]
kind = "llama"
layers = 4
width = 192
heads = 4
context = 128
[linear]
high_precision = "fp32"
[schedule]
peak = 2e-3
warmup = 50
[optimizer]
beta2 = 0.98
clip_norm = 1.0
[data]
kind = "text"
[train]
steps = 800
batch = 16
valid_every = 100
valid_batches = 16
)"},
    {{"paper-100m",
      "llama with about 100 million parameters, the size in Figure 5 of [Fishman]; for a GPU"},
     R"(
[model]
kind = "llama"
layers = 12
width = 768
heads = 12
context = 2048
[linear]
high_precision = "bf16"
[schedule]
peak = 6e-4
warmup = 2000
[optimizer]
clip_norm = 1.0
[data]
kind = "generated-text"
size = 268435456
[train]
steps = 20000
batch = 32
valid_every = 500
valid_batches = 16
)"},
    {{"vit-small",
      "image classifier on generated images; for Fashion-MNIST set data.kind to images, and "
      "data.path"},
     R"(
[model]
kind = "vit"
layers = 4
width = 128
heads = 4
patch = 4
[linear]
high_precision = "fp32"
[schedule]
peak = 1e-3
warmup = 50
[optimizer]
beta2 = 0.99
clip_norm = 1.0
[data]
kind = "generated-images"
size = 12000
image = 28
[train]
steps = 500
batch = 64
valid_every = 100
valid_batches = 16
)"},
    {{"clip-small", "CLIP on generated images of shapes with captions"},
     R"(
[model]
kind = "clip"
layers = 4
width = 128
heads = 4
patch = 4
[linear]
high_precision = "fp32"
[schedule]
peak = 1e-3
warmup = 50
[optimizer]
beta2 = 0.98
epsilon = 1e-6
weight_decay = 0.2
clip_norm = 1.0
[data]
kind = "generated-shapes"
size = 8192
image = 32
[train]
steps = 500
batch = 64
valid_every = 100
valid_batches = 8
)"},
    {{"mlp-small",
      "student of a teacher, scaled down from [MXInstability]: residual MLP of width 128 and depth "
      "4"},
     R"(
[model]
kind = "mlp"
layers = 4
width = 128
[linear]
high_precision = "fp32"
[schedule]
peak = 1e-3
final = 0.1
[optimizer]
beta1 = 0.9
beta2 = 0.999
weight_decay = 0.0
[data]
kind = "gaussian"
size = 65536
features = 128
[train]
steps = 1000
batch = 256
valid_every = 100
)"},
    {{"proxy-small",
      "gpt with the settings of small-scale proxies for instabilities: clip_norm 1, beta2 0.95, "
      "small weight decay"},
     R"(
[model]
kind = "gpt"
layers = 4
width = 128
heads = 4
context = 128
[linear]
high_precision = "fp32"
[schedule]
peak = 3e-3
warmup = 100
final = 0.01
[optimizer]
beta1 = 0.9
beta2 = 0.95
epsilon = 1e-8
weight_decay = 1e-4
clip_norm = 1.0
[data]
kind = "generated-text"
size = 4194304
[train]
steps = 1000
batch = 16
valid_every = 100
valid_batches = 8
)"},
};

constexpr auto kPresets = [] {
  std::array<TrainPreset, std::size(kRows)> presets;
  for (size_t i = 0; i < presets.size(); ++i) presets[i] = kRows[i].preset;
  return presets;
}();

}  // namespace

std::span<const TrainPreset> TrainPresets() { return kPresets; }

TrainConfig MakeTrainPreset(std::string_view name) {
  std::string valid;
  for (const PresetRow& row : kRows) {
    if (row.preset.name == name) {
      return ParseTrainConfig(row.toml, fmt::format("preset {}", name), {}, {});
    }
    valid += fmt::format("{}{}", valid.empty() ? "" : ", ", row.preset.name);
  }
  throw NotOneOf("preset", name, valid);
}

}  // namespace numsim
