// Checkpoints: the whole state of a training in one .safetensors file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/array.h"

namespace numsim {

struct TrainState {
  // "model/NAME" (float32, rows x cols), "optimizer/NAME" (uint8), "scaling/NAME" (float32).
  std::vector<std::pair<std::string, Array>> tensors;
  // step, status, reason, losses, configuration as TOML, ...
  std::vector<std::pair<std::string, std::string>> fields;

  // nullptr where there is none.
  const std::string* FindField(std::string_view name) const;
  const Array* FindTensor(std::string_view name) const;

  // Throw Error naming what is missing, or is no such number.
  const std::string& Field(std::string_view name) const;
  uint64_t Count(std::string_view name) const;
  // Numbers separated by blanks, as NumbersText writes them.
  std::vector<double> Numbers(std::string_view name) const;
};

// Reads back to the same bits, but for the payloads of NaNs.
std::string NumbersText(const std::vector<double>& numbers);

// One file, replaced in one step: tensors, and the fields as its metadata. Any reader of
// .safetensors finds the weights under model/NAME. Requires names that differ.
void WriteCheckpoint(const std::filesystem::path& path, const TrainState& state);
// Throws Error naming the file and what is wrong with it.
TrainState ReadCheckpoint(const std::filesystem::path& path);

}  // namespace numsim
