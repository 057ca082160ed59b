#include "numsim/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/io/csv.h"
#include "numsim/io/safetensors.h"
#include "numsim/io/shared/safetensors_writer.h"
#include "numsim/io/shared/sha256.h"

namespace numsim {
namespace {

// The field that distinguishes a checkpoint from other .safetensors files, and its value.
constexpr std::string_view kMark = "numsim.checkpoint";
constexpr std::string_view kMarkText = "2";
constexpr std::string_view kDigest = "numsim.sha256";

template <typename Value>
const Value* Find(const std::vector<std::pair<std::string, Value>>& entries,
                  std::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return &value;
  }
  return nullptr;
}

template <typename Number>
Number ParseNumber(std::string_view field, std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    throw Error::Format("field '{}' holds '{}', expected a number", field, Printable(text));
  }
  return value;
}

// Returns the SHA-256 of all fields and tensors. The order of the tensors does not matter: a file has
// an order of its own.
std::string DigestOf(const TrainState& state) {
  Sha256 digest;
  const auto add = [&](std::string_view text) {
    digest.Add(fmt::format("{} ", text.size()));
    digest.Add(text);
  };
  for (const auto& [name, text] : state.fields) {
    add(name);
    add(text);
  }
  std::map<std::string_view, const Array*> tensors;
  for (const auto& [name, array] : state.tensors) tensors.emplace(name, &array);
  for (const auto& [name, array] : tensors) {
    add(name);
    add(ToString(array->type));
    add(ShapeToString(array->shape));
    digest.Add(array->bytes);
  }
  return digest.Hex();
}

}  // namespace

const std::string* TrainState::FindField(std::string_view name) const { return Find(fields, name); }
const Array* TrainState::FindTensor(std::string_view name) const { return Find(tensors, name); }

const std::string& TrainState::Field(std::string_view name) const {
  const std::string* const text = FindField(name);
  if (text == nullptr) throw Error::Format("field '{}' is missing", name);
  return *text;
}

uint64_t TrainState::Count(std::string_view name) const {
  return ParseNumber<uint64_t>(name, Field(name));
}

std::vector<double> TrainState::Numbers(std::string_view name) const {
  std::vector<double> numbers;
  std::string_view text = Field(name);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    numbers.push_back(ParseNumber<double>(name, text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return numbers;
}

std::string NumbersText(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) {
    if (!text.empty()) text += ' ';
    text += FormatCell(number);
  }
  return text;
}

void WriteCheckpoint(const std::filesystem::path& path, const TrainState& state) {
  std::vector<std::pair<std::string, std::string>> metadata = {
      {std::string(kMark), std::string(kMarkText)}, {std::string(kDigest), DigestOf(state)}};
  metadata.insert(metadata.end(), state.fields.begin(), state.fields.end());
  WriteSafetensors(path, state.tensors, metadata);
}

TrainState ReadCheckpoint(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  TrainState state;
  state.fields = file.Metadata();
  const std::string* const mark = state.FindField(kMark);
  if (mark == nullptr) {
    throw Error::Format(
        "{}: not a checkpoint of a training: metadata '{}' is missing", path.string(), kMark);
  }
  if (*mark != kMarkText) {
    throw Error::Format("{}: checkpoint of another version: {} is '{}', expected '{}'",
                        path.string(),
                        kMark,
                        Printable(*mark),
                        kMarkText);
  }
  const std::string digest = state.FindField(kDigest) == nullptr ? "" : state.Field(kDigest);
  std::erase_if(state.fields,
                [](const auto& field) { return field.first == kMark || field.first == kDigest; });
  for (const TensorInfo& info : file.Tensors()) {
    state.tensors.emplace_back(info.name, file.Read(info.name));
  }
  if (DigestOf(state) != digest) {
    throw Error::Format(
        "{}: has been changed since it was written (its digest is another); restore it from a copy, "
        "or delete it to train from the start",
        path.string());
  }
  return state;
}

}  // namespace numsim
