#include "numsim/train/checkpoint.h"

#include <cmath>
#include <limits>
#include <set>

#include "numsim/io/safetensors.h"
#include "numsim/io/shared/safetensors_writer.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using CheckpointTest = IoTest;

Array BytesOf(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {ElementType::kU8, {text.size()}, {begin, begin + text.size()}};
}

TrainState SomeState() {
  TrainState state;
  state.tensors.emplace_back("model/a",
                             Array{ElementType::kF32, {1, 2}, std::vector<std::byte>(8)});
  state.tensors.emplace_back("optimizer/a.m", BytesOf("xyz"));
  state.fields = {{"step", "12"}, {"reason", ""}, {"config", "a = 1\n[b]\nc = \"d\"\n"}};
  return state;
}

TEST_F(CheckpointTest, TensorsAndFieldsReadBack) {
  WriteCheckpoint(Path("c.safetensors"), SomeState());
  const TrainState read = ReadCheckpoint(Path("c.safetensors"));
  EXPECT_EQ(read.fields, SomeState().fields);
  ASSERT_NE(read.FindTensor("model/a"), nullptr);
  EXPECT_EQ(read.FindTensor("model/a")->shape, (std::vector<size_t>{1, 2}));
  ASSERT_NE(read.FindTensor("optimizer/a.m"), nullptr);
  EXPECT_EQ(read.FindTensor("optimizer/a.m")->bytes, BytesOf("xyz").bytes);
  EXPECT_EQ(read.FindTensor("model/b"), nullptr);
  EXPECT_EQ(read.FindField("nothing"), nullptr);
}

TEST_F(CheckpointTest, NumbersReadBackToTheSameBits) {
  const std::vector<double> numbers = {
      0.1, -0.0, 5e-324, 1.7976931348623157e308, std::numeric_limits<double>::infinity(), 3};
  TrainState state;
  state.fields = {{"losses", NumbersText(numbers)}, {"none", NumbersText({})}, {"step", "7"}};
  const std::vector<double> read = state.Numbers("losses");
  ASSERT_EQ(read.size(), numbers.size());
  EXPECT_EQ(std::memcmp(read.data(), numbers.data(), 8 * numbers.size()), 0);
  EXPECT_TRUE(state.Numbers("none").empty());
  EXPECT_EQ(state.Count("step"), 7u);
  state.fields = {{"losses", NumbersText({std::nan("")})}};
  EXPECT_TRUE(std::isnan(state.Numbers("losses").at(0)));
}

TEST_F(CheckpointTest, FieldsThatAreMissingOrNoNumbersAreErrors) {
  TrainState state;
  state.fields = {{"step", "12 "}, {"negative", "-1"}, {"losses", "1  2"}, {"text", "1 two"}};
  ExpectMessage(ErrorOf([&] { state.Field("status"); }), {"'status' is missing"});
  ExpectMessage(ErrorOf([&] { state.Count("step"); }), {"'step'", "expected a number"});
  ExpectMessage(ErrorOf([&] { state.Count("negative"); }), {"'negative'"});
  ExpectMessage(ErrorOf([&] { state.Numbers("losses"); }), {"'losses'"});
  ExpectMessage(ErrorOf([&] { state.Numbers("text"); }), {"'text'", "'two'"});
}

TEST_F(CheckpointTest, TruncatedAnywhereItIsRefused) {
  WriteCheckpoint(Path("c"), SomeState());
  const std::string bytes = Bytes(Path("c"));
  for (size_t length = 0; length < bytes.size(); ++length) {
    Put("cut", std::string_view(bytes).substr(0, length));
    ExpectMessage(ErrorOf([&] { ReadCheckpoint(Path("cut")); }), {Path("cut").string()});
  }
}

// A bit of each byte of the data and of the metadata. A change of the header may also break it.
TEST_F(CheckpointTest, AnyFlippedBitIsRefused) {
  WriteCheckpoint(Path("c"), SomeState());
  const std::string bytes = Bytes(Path("c"));
  size_t found_by_digest = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 7)));
    Put("flipped", flipped);
    const std::string message = ErrorOf([&] { ReadCheckpoint(Path("flipped")); });
    ExpectMessage(message, {Path("flipped").string()});
    if (message.find("has been changed since it was written") != message.npos) ++found_by_digest;
  }
  EXPECT_GT(found_by_digest, 100u);
}

// The bytes are the same one after the other, but they belong to another name.
TEST_F(CheckpointTest, ABoundaryThatMovedIsRefused) {
  const auto digest_of = [&](std::string name, std::string text) {
    TrainState state = SomeState();
    state.fields.emplace_back(std::move(name), std::move(text));
    WriteCheckpoint(Path("c"), state);
    const SafetensorsFile file(Path("c"));
    for (const auto& [key, value] : file.Metadata()) {
      if (key == "numsim.sha256") return value;
    }
    return std::string();
  };
  EXPECT_NE(digest_of("ab", "c"), "");
  EXPECT_NE(digest_of("ab", "c"), digest_of("a", "bc"));
}

// Each type with the same bytes, and each shape of them.
TEST_F(CheckpointTest, TheTypeAndTheShapeOfATensorAreInTheDigest) {
  std::vector<std::string> digests;
  for (const ElementType type : {ElementType::kF32, ElementType::kU32}) {
    for (const std::vector<size_t>& shape : {std::vector<size_t>{1, 2}, {2, 1}, {2}}) {
      TrainState state = SomeState();
      state.tensors[0].second = {type, shape, std::vector<std::byte>(8)};
      WriteCheckpoint(Path("c"), state);
      const SafetensorsFile file(Path("c"));
      for (const auto& [key, value] : file.Metadata()) {
        if (key == "numsim.sha256") digests.push_back(value);
      }
    }
  }
  EXPECT_EQ(std::set<std::string>(digests.begin(), digests.end()).size(), 6u);
}

TEST_F(CheckpointTest, OtherFilesAreRefused) {
  WriteSafetensors(Path("weights"), SomeState().tensors, {});
  ExpectMessage(ErrorOf([&] { ReadCheckpoint(Path("weights")); }),
                {Path("weights").string(), "not a checkpoint of a training"});
  const std::vector<std::pair<std::string, std::string>> later = {{"numsim.checkpoint", "1"}};
  WriteSafetensors(Path("later"), SomeState().tensors, later);
  ExpectMessage(ErrorOf([&] { ReadCheckpoint(Path("later")); }),
                {Path("later").string(), "another version", "'1'", "'2'"});
  ExpectMessage(ErrorOf([&] { ReadCheckpoint(Path("none")); }), {Path("none").string()});
}

}  // namespace
}  // namespace numsim
