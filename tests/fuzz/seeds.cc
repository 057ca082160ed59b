#include "tests/fuzz/seeds.h"

#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "experiments/runner/journal.h"
#include "experiments/runner/settings.h"
#include "numsim/data/source.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/manifest.h"
#include "numsim/io/npy.h"
#include "numsim/io/shared/safetensors_writer.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/pack.h"
#include "numsim/train/checkpoint.h"
#include "numsim/train/trainer.h"
#include "tests/fuzz/input_place.h"

namespace numsim::fuzz {
namespace {

Array Filled(ElementType type, std::vector<size_t> shape) {
  Array array{type, std::move(shape), {}};
  array.bytes.resize(array.Elements() * ElementBytes(type));
  for (size_t i = 0; i < array.bytes.size(); ++i)
    array.bytes[i] = static_cast<std::byte>(i * 37 % 251);
  return array;
}

// Returns the bytes of the file that `write` writes.
template <typename Write>
std::string Written(const Write& write) {
  const Folder folder;
  write(folder.Path() / "x");
  return folder.Get("x");
}

std::string Gzip(std::string_view bytes) {
  std::string packed(bytes.size() + 200, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

experiments::StoredSettings SomeSettings() {
  experiments::StoredSettings stored{"update-fidelity", {}};
  stored.settings.preset = "quick";
  stored.settings.seeds = 3;
  stored.settings.options = {{"formats", "bf16,e4m3fn"}, {"size", "64"}, {"keys", ""}};
  return stored;
}

}  // namespace

Seeds NpySeeds() {
  Seeds seeds;
  for (const ElementType type : {ElementType::kF32,
                                 ElementType::kF16,
                                 ElementType::kF64,
                                 ElementType::kU8,
                                 ElementType::kU64}) {
    for (const std::vector<size_t>& shape : {std::vector<size_t>{},
                                             std::vector<size_t>{3},
                                             std::vector<size_t>{2, 0},
                                             std::vector<size_t>{2, 3}}) {
      seeds.push_back(Written([&](const auto& path) { WriteNpy(path, Filled(type, shape)); }));
    }
  }
  const std::string matrix = Written([](const auto& path) {
    WriteNpy(path, Filled(ElementType::kF32, {2, 3}));
  });
  seeds.push_back(Replaced(matrix, "<f4", ">f4"));
  seeds.push_back(Replaced(matrix, "False", "True "));
  return seeds;
}

Seeds SafetensorsSeeds() {
  const std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"}};
  Seeds seeds;
  for (const ElementType type :
       {ElementType::kF32, ElementType::kBf16, ElementType::kF8E4M3, ElementType::kU32}) {
    const std::vector<std::pair<std::string, Array>> tensors = {{"a", Filled(type, {2, 2})},
                                                                {"b", Filled(type, {})}};
    seeds.push_back(Written([&](const auto& path) { WriteSafetensors(path, tensors, metadata); }));
  }
  return seeds;
}

std::string IdxLabels() { return {"\0\0\x08\x01\0\0\0\4\0\1\2\1", 12}; }

Seeds IdxSeeds() {
  const std::string header("\0\0\x08\x03\0\0\0\4\0\0\0\3\0\0\0\2", 16);
  const std::string images = header + std::string(24, '\x80');
  return {images, Gzip(images), Gzip(images.substr(0, 20)) + Gzip(images.substr(20))};
}

std::string CaptionImages() {
  return Written([](const auto& path) { WriteNpy(path, Filled(ElementType::kU8, {4, 2, 2, 3})); });
}

Seeds CaptionSeeds() {
  const std::string captions = "a red square\na blue disk\na red square\r\ncaf\xC3\xA9\n";
  const std::string meta =
      "concept\tsplit\tother\nsquare\ttrain\t1\ndisk\ttrain\t\nsquare\tvalid\t\ncup\tvalid\t3\n";
  return {captions, captions + '\0' + meta};
}

Seeds TomlSeeds() {
  Seeds seeds = {
      "preset = \"tiny\"\n[train]\nsteps = 10\n",
      "model = { kind = \"clip\", layers = 2 }\nlinear.kind = \"switchback\"\n[[linear.override]]\n"
      "layers = \"head\"\nkind = \"standard\"\n",
      "optimizer.v = \"e4m3fn@block:32+sr\"\nstorage.activations = 'bf16' # comment\n",
      "[what_if]\nrecipes = [\"e2m1fn block:16 sr\", 'e4m3fn delayed history:4 max']\n"
      "layers = ['head']\n",
  };
  for (const TrainPreset& preset : TrainPresets())
    seeds.push_back(WriteTrainConfig(MakeTrainPreset(preset.name)));
  return seeds;
}

Seeds CsvSeeds() {
  return {
      "a,b\n1,2\n", "name,value\n\"x, y\",1e-3\n\"a\"\"b\",nan\n\"two\nlines\",inf\n", "only\n"};
}

Seeds JournalSeeds() {
  return {Written([](const auto& path) {
    experiments::Journal journal(path);
    journal.Append({0,
                    "normal k=4 seed=0",
                    "4f1c",
                    {{"variance", {{Cell(1.5), Cell("x")}, {Cell(2), Cell("")}}}}});
    journal.Append({1, "normal k=8 seed=0", "4f1c", {{"variance", {}}, {"times", {{Cell(0.25)}}}}});
  })};
}

Seeds SettingsSeeds() {
  return {Written([](const auto& path) { experiments::WriteSettings(path, SomeSettings()); })};
}

Seeds ManifestSeeds() {
  return {Written([](const auto& path) {
    numsim::Manifest manifest;
    manifest.command = {"numsim", "run", "update-fidelity"};
    manifest.outputs = {{"a.csv", 12, std::string(64, 'a')}, {"b.svg", 0, std::string(64, '0')}};
    WriteManifest(path, manifest);
  })};
}

Seeds PackSeeds() {
  const Folder folder;
  std::vector<PackEntry> entries = PackEntries("p3109-minimal");
  entries.resize(2);
  for (PackEntry& entry : entries) entry.level = ParseCaseLevel("random:4");
  WritePack(folder.Path() / "pack", "p3109-minimal", entries, FindPackForm("hex"));
  return {folder.Get("pack/manifest.json")};
}

Seeds OracleSeeds() {
  return {"38 A1 3C 01\n", "38 a1 3c\r\n\n 0x00 0XFF 7f\n", "38 A1\t3C 00\n00 00 00 00\n"};
}

TrainConfig SmallTraining() {
  TrainConfig config;
  config.model.kind = ModelKind::kLlama;
  config.model.layers = 1;
  config.model.width = config.model.context = 4;
  config.model.heads = 1;
  config.data.kind = DataKind::kGeneratedText;
  config.data.size = 1 << 12;
  config.train.steps = 2;
  config.train.batch = 1;
  config.optimizer.v = ParseMomentFormat("e4m3fn@block:32+sr");
  config.linear.all.kind = "te-hybrid";
  config.linear.all.delayed = DelayedScalingOptions{4, AmaxAlgorithm::kMax, 0};
  return config;
}

Seeds CheckpointSeeds() {
  Trainer trainer(SmallTraining(), OpenData(SmallTraining().data));
  trainer.Step();
  return {Written([&](const auto& path) { WriteCheckpoint(path, trainer.Save()); })};
}

apps::UpdateStateOwner SmallOwner() { return {"kahan", "bf16", {3}, std::string(64, 'a')}; }

UpdateState SmallState() {
  UpdateState state;
  for (float& value : state.values.Resize(1, 3).Span()) value = 0;
  return state;
}

Seeds UpdateStateSeeds() { return {apps::UpdateStateFile(SmallState(), SmallOwner())}; }

Seeds ModeSeeds() {
  return {"exact",
          "fp32",
          "fp32:pairwise",
          "trunc:16,126",
          "hopper-fp8",
          "hopper-fp8-fast",
          "library",
          "bf16"};
}

Seeds FormatSeeds() {
  return {"e4m3fn",
          "e5m2",
          "bf16",
          "fp16",
          "e8m0",
          "int8",
          "binary8p3se",
          "e3m4",
          "e2m1fn",
          "e3m2:bias=4"};
}

Seeds MomentSeeds() {
  return {"fp32",
          "e4m3fn@block",
          "e4m3fn@block:32+sr",
          "dynamic:64",
          "bf16+sr:8",
          "int8@tensor",
          "e5m2@row"};
}

Seeds RuleSeeds() {
  return {"naive",
          "stochastic:16",
          "kahan",
          "master-fp32",
          "norm-matched@row",
          "split-master",
          "note-as-printed"};
}

Seeds LevelSeeds() { return {"full", "random:4096", "edges", "boundary"}; }

Seeds NumberSeeds() {
  return {"0.78", "-1e-400", "0x1.8p-1", "inf", "nan", "123456789012345678901"};
}

}  // namespace numsim::fuzz
