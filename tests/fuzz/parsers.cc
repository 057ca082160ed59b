#include "tests/fuzz/parsers.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/update_state_file.h"
#include "experiments/runner/experiment.h"
#include "experiments/runner/journal.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/settings.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "numsim/data/image_set.h"
#include "numsim/data/source.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/io/npy.h"
#include "numsim/io/safetensors.h"
#include "numsim/io/shared/sha256.h"
#include "numsim/moments/moment_format.h"
#include "numsim/oracle/case_text.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/judge.h"
#include "numsim/oracle/operation.h"
#include "numsim/oracle/pack.h"
#include "numsim/rounding/exact_number.h"
#include "numsim/train/checkpoint.h"
#include "numsim/train/trainer.h"
#include "numsim/updates/update_rule.h"
#include "tests/fuzz/input_place.h"
#include "tests/fuzz/seeds.h"

namespace numsim::experiments {

// Settings are read with what their experiment knows of its names. None is compiled into the fuzzer.
const Experiment* FindExperiment(std::string_view) { return nullptr; }

}  // namespace numsim::experiments

namespace numsim::fuzz {
namespace {

using Json = nlohmann::ordered_json;

// Aborts, which a fuzzer reports, unless the property holds.
void Require(bool property) {
  if (!property) std::abort();
}

// Calls a parser, which may refuse its input.
template <typename Call>
void MayRefuse(const Call& call) {
  try {
    call();
  } catch (const Error&) {
  }
}

// Returns the value that a parser gives, or nothing if it refuses its input.
template <typename Call>
auto Accepted(const Call& call) -> std::optional<decltype(call())> {
  try {
    return call();
  } catch (const Error&) {
    return std::nullopt;
  }
}

void Npy(std::string_view bytes) {
  const auto array = Accepted([&] { return ReadNpy(FileOf(bytes)); });
  // Bytes of a format that the file does not name are read alone.
  if (!array || array->type == ElementType::kRaw8 || array->type == ElementType::kRaw16) return;
  static const Folder folder;
  WriteNpy(folder.Path() / "x.npy", *array);
  const Array again = ReadNpy(folder.Path() / "x.npy");
  Require(again.type == array->type && again.shape == array->shape && again.bytes == array->bytes);
}

void Safetensors(std::string_view bytes) {
  MayRefuse([&] {
    const SafetensorsFile file(FileOf(bytes));
    for (const TensorInfo& tensor : file.Tensors()) {
      MayRefuse([&] { file.Read(tensor.name); });
    }
  });
}

// As images, which are larger than labels, plain or compressed with gzip.
void Idx(std::string_view bytes) {
  static const Folder folder;
  folder.Put("train-images-idx3-ubyte", bytes);
  folder.Put("train-labels-idx1-ubyte", IdxLabels());
  MayRefuse([&] { ReadIdxImages(folder.Path(), true); });
}

// meta.tsv and captions.txt, separated by a zero byte.
void Captions(std::string_view bytes) {
  static const Folder folder;
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  folder.Put("images.npy", CaptionImages());
  folder.Put("captions.txt", bytes.substr(0, end));
  folder.Put("meta.tsv", bytes.substr(std::min(end + 1, bytes.size())));
  DataConfig config;
  config.kind = DataKind::kCaptions;
  config.path = folder.Path().string();
  MayRefuse([&] { OpenData(config); });
}

void Toml(std::string_view bytes) {
  const auto config = Accepted([&] { return ParseTrainConfig(bytes, "x.toml", "/", {}); });
  if (!config) return;
  const std::string text = WriteTrainConfig(*config);
  Require(WriteTrainConfig(ParseTrainConfig(text, "again.toml", "/", {})) == text);
}

void Csv(std::string_view bytes) {
  const auto table = Accepted([&] { return ParseCsv(bytes, "x.csv"); });
  if (!table) return;
  const std::string text = ToCsv(*table);
  Require(ToCsv(ParseCsv(text, "again.csv")) == text);
}

// Gives each line that is a JSON object the digest that it must have, so that what stands behind the
// check of digests is reached.
std::string WithDigests(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string line(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) {
      json.erase("sha256");
      try {
        json["sha256"] = Sha256OfText(json.dump());
        text += json.dump() + "\n";
        continue;
      } catch (const Json::exception&) {  // a text that is not UTF-8
      }
    }
    text += line + "\n";
  }
  return text;
}

void Journal(std::string_view bytes) {
  MayRefuse([&] { experiments::ReadJournal(FileOf(bytes)); });
  MayRefuse([&] { experiments::ReadJournal(FileOf(WithDigests(bytes))); });
}

void ResultSettings(std::string_view bytes) {
  const auto stored = Accepted([&] { return experiments::ReadSettings(FileOf(bytes)); });
  if (!stored) return;
  static const Folder folder;
  experiments::WriteSettings(folder.Path() / "settings.json", *stored);
  const auto again = experiments::ReadSettings(folder.Path() / "settings.json");
  Require(experiments::FirstDifference(*stored, "a", again, "b").empty());
}

void Manifest(std::string_view bytes) {
  static const Folder folder;
  folder.Put("manifest.json", bytes);
  MayRefuse([&] { experiments::ListedOutputs(folder.Path()); });
}

void Pack(std::string_view bytes) {
  static const Folder folder;
  folder.Put("manifest.json", bytes);
  MayRefuse([&] { ReadPack(folder.Path()); });
}

void OracleLine(std::string_view bytes) {
  static const auto operation = MakeOperation({.op = "add", .format = "e4m3fn"});
  static const CaseColumns columns = ColumnsOf(*operation);
  std::vector<uint64_t> row(columns.all.size());
  const ParsedRow parsed = ParseRow(bytes, columns.all, row);
  Require(parsed.columns <= row.size());
}

void OracleText(std::string_view bytes) {
  static const auto operation = MakeOperation({.op = "add", .format = "e4m3fn"});
  // Opened anew, to read from the start.
  const int descriptor = ::open(FileOf(bytes).c_str(), O_RDONLY | O_CLOEXEC);
  Require(descriptor >= 0);
  MayRefuse([&] {
    Judge judge(*operation, NanRule::kAny, 4);
    TallyText(descriptor, "x", ColumnsOf(*operation), false, judge);
  });
  ::close(descriptor);
}

// Gives the metadata the digest that they must have, and restores a trainer.
void Checkpoint(std::string_view bytes) {
  MayRefuse([&] { ReadCheckpoint(FileOf(bytes)); });
  static Trainer trainer(SmallTraining(), OpenData(SmallTraining().data));
  MayRefuse([&] {
    const SafetensorsFile file(FileOf(bytes));
    TrainState state;
    for (const TensorInfo& tensor : file.Tensors()) {
      state.tensors.emplace_back(tensor.name, file.Read(tensor.name));
    }
    for (const auto& field : file.Metadata()) {
      if (!field.first.starts_with("numsim.")) state.fields.push_back(field);
    }
    trainer.Restore(state);
  });
}

void UpdateState(std::string_view bytes) {
  const apps::UpdateStateOwner owner = SmallOwner();
  MayRefuse([&] { apps::ReadUpdateState(FileOf(bytes).string(), owner, SmallState()); });
}

// A text that is accepted is written as one that gives the same value.
template <auto parse>
void Text(std::string_view bytes) {
  const auto value = Accepted([&] { return parse(bytes); });
  if (!value) return;
  const std::string text(ToString(*value));
  Require(std::string(ToString(parse(text))) == text);
}

AccumulationMode ParseMode(std::string_view text) { return ParseAccumulationMode(text); }
FormatSpec ParseSpec(std::string_view text) { return ParseFormat(text).spec; }

void Level(std::string_view bytes) {
  MayRefuse([&] { ParseCaseLevel(bytes); });
}

// A number is also itself plus zero, and has the nearest float64 of the C library.
void Number(std::string_view bytes) {
  const auto number = Accepted([&] { return ParseExactNumber(bytes, "number"); });
  if (!number || !number->IsFinite()) return;
  Require((*number - (*number + ExactNumber())).IsZero());
  Require(number->ToFloat64() == std::strtod(std::string(bytes).c_str(), nullptr));
}

constexpr Parser kParsers[] = {
    {"npy", Npy, NpySeeds},
    {"safetensors", Safetensors, SafetensorsSeeds},
    {"idx", Idx, IdxSeeds},
    {"captions", Captions, CaptionSeeds},
    {"toml", Toml, TomlSeeds},
    {"csv", Csv, CsvSeeds},
    {"journal", Journal, JournalSeeds},
    {"settings", ResultSettings, SettingsSeeds},
    {"manifest", Manifest, ManifestSeeds},
    {"pack", Pack, PackSeeds},
    {"oracle-line", OracleLine, OracleSeeds},
    {"oracle-text", OracleText, OracleSeeds},
    {"checkpoint", Checkpoint, CheckpointSeeds},
    {"update-state", UpdateState, UpdateStateSeeds},
    {"accumulation-mode", Text<ParseMode>, ModeSeeds},
    {"format", Text<ParseSpec>, FormatSeeds},
    {"moment-format", Text<ParseMomentFormat>, MomentSeeds},
    {"update-rule", Text<ParseUpdateRule>, RuleSeeds},
    {"level", Level, LevelSeeds},
    {"number", Number, NumberSeeds},
};

}  // namespace

std::span<const Parser> Parsers() { return kParsers; }

}  // namespace numsim::fuzz
