// Checkpoints: the complete state of a training in one .safetensors file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/array.h"

namespace numsim {

// The state of a training as a checkpoint holds it: named tensors and named texts.
struct TrainState {
  // "model/NAME" (float32, rows x cols), "optimizer/NAME" (uint8), "scaling/NAME" (float32).
  std::vector<std::pair<std::string, Array>> tensors;
  // step, status, reason, losses, configuration as TOML, ...
  std::vector<std::pair<std::string, std::string>> fields;

  // Return nullptr if there is no such entry.
  const std::string* FindField(std::string_view name) const;
  const Array* FindTensor(std::string_view name) const;

  // Throw Error naming the field if it is missing or is not a number of that kind.
  const std::string& Field(std::string_view name) const;
  uint64_t Count(std::string_view name) const;
  // Returns numbers separated by blanks, as NumbersText writes them.
  std::vector<double> Numbers(std::string_view name) const;
};

// Returns text that TrainState::Numbers reads back to the same bits, except for NaN payloads.
std::string NumbersText(const std::vector<double>& numbers);

// Writes the tensors, with the fields and a digest of everything as metadata, into one file that is
// replaced atomically. Any reader of .safetensors files finds the weights under model/NAME. Requires
// distinct names.
void WriteCheckpoint(const std::filesystem::path& path, const TrainState& state);
// Reads the file. Throws Error naming the file and the problem, also if its content does not have
// the digest.
TrainState ReadCheckpoint(const std::filesystem::path& path);

}  // namespace numsim
