#include "experiments/shared/saved_training.h"

#include <cstring>
#include <utility>

#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

constexpr const char* kVariables = "trial/variables";  // a tensor of the checkpoint

std::string FieldOf(const std::string& name) { return "trial." + name; }

void RequireIdentity(const NamedTexts& identity, const TrainState& state) {
  for (const auto& [name, expected] : identity) {
    const std::string& found = state.Field(FieldOf(name));
    if (found == expected) continue;
    throw Error::Format("is of {} '{}', expected '{}'", name, found, expected);
  }
}

}  // namespace

void WriteSavedTraining(const std::filesystem::path& path,
                        const NamedTexts& identity,
                        SavedTraining saved) {
  for (const auto& [name, text] : identity) saved.state.fields.emplace_back(FieldOf(name), text);
  Array variables;
  variables.type = ElementType::kU8;
  variables.shape = {saved.variables.size()};
  variables.bytes.resize(saved.variables.size());
  std::memcpy(variables.bytes.data(), saved.variables.data(), saved.variables.size());
  saved.state.tensors.emplace_back(kVariables, std::move(variables));
  WriteCheckpoint(path, saved.state);
}

SavedTraining ReadSavedTraining(const std::filesystem::path& path, const NamedTexts& identity) {
  SavedTraining saved{.state = ReadCheckpoint(path), .variables = {}};
  RequireIdentity(identity, saved.state);
  const Array* const variables = saved.state.FindTensor(kVariables);
  if (variables == nullptr) throw Error::Format("tensor '{}' is missing", kVariables);
  saved.variables.assign(reinterpret_cast<const char*>(variables->bytes.data()),
                         variables->bytes.size());
  return saved;
}

}  // namespace numsim::experiments
