// For the tests of train/: small trainings, and what they leave.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "numsim/train/run.h"
#include "numsim/train/trainer.h"
#include "tests/support/io_fixture.h"

namespace numsim {

// A llama of one block of width 16 on generated text: 12 steps of 4 sequences of 16 tokens.
TrainConfig TinyConfig();
// The same, with most of what has a state: 8-bit moments, stochastic rounding of moments, gradients
// and weights, delayed scaling, the dynamic loss scaler, bf16 storage.
TrainConfig StatefulConfig();

std::shared_ptr<const DataSource> OpenShared(const DataConfig& config);

// Steps until the training has ended, or has taken `steps`.
void StepUntil(Trainer& trainer, uint64_t steps = UINT64_MAX);

// Tensors of the state by name, and its fields.
std::map<std::string, std::vector<std::byte>> TensorBytes(const TrainState& state);
// All tables as CSV.
std::string TelemetryText(const Telemetry& telemetry);

// Name -> content of the files of a finished training that are to be equal between machines.
std::map<std::string, std::string> ReproducibleFiles(const std::filesystem::path& directory);

}  // namespace numsim
