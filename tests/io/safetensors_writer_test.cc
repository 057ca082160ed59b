#include "numsim/io/shared/safetensors_writer.h"

#include <cstring>

#include "numsim/io/safetensors.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using SafetensorsWriterTest = IoTest;
using Tensors = std::vector<std::pair<std::string, Array>>;
using Texts = std::vector<std::pair<std::string, std::string>>;

Array MakeArray(ElementType type, std::vector<size_t> shape, int first) {
  Array array{type, std::move(shape), {}};
  array.bytes.resize(array.Elements() * ElementBytes(type));
  for (size_t i = 0; i < array.bytes.size(); ++i) {
    array.bytes[i] = static_cast<std::byte>(first + static_cast<int>(i));
  }
  return array;
}

void ExpectEqual(const Array& read, const Array& written) {
  EXPECT_EQ(read.type, written.type);
  EXPECT_EQ(read.shape, written.shape);
  EXPECT_EQ(read.bytes, written.bytes);
}

TEST_F(SafetensorsWriterTest, EveryReadableTypeReadsBack) {
  const ElementType types[] = {ElementType::kF64,
                               ElementType::kF32,
                               ElementType::kF16,
                               ElementType::kBf16,
                               ElementType::kF8E4M3,
                               ElementType::kF8E5M2,
                               ElementType::kU8,
                               ElementType::kU16,
                               ElementType::kU32};
  Tensors tensors;
  for (const ElementType type : types) {
    tensors.emplace_back(fmt::format("t/{}", ToString(type)), MakeArray(type, {3, 5}, 40));
  }
  WriteSafetensors(Path("x.safetensors"), tensors);
  const SafetensorsFile file(Path("x.safetensors"));
  EXPECT_EQ(file.Tensors().size(), tensors.size());
  EXPECT_TRUE(file.Metadata().empty());
  for (const auto& [name, array] : tensors) ExpectEqual(file.Read(name), array);
}

TEST_F(SafetensorsWriterTest, BytesAreThoseOfTheFormat) {
  const Tensors tensors = {{"a", MakeArray(ElementType::kU8, {3}, 'x')},
                           {"b", MakeArray(ElementType::kU16, {}, 'p')}};
  WriteSafetensors(Path("x"), tensors, Texts{{"k", "v"}});
  std::string header = R"({"__metadata__":{"k":"v"},)"
                       R"("b":{"dtype":"U16","shape":[],"data_offsets":[0,2]},)"
                       R"("a":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})";
  while (header.size() % 8 != 0) header += ' ';
  std::string expected(8, '\0');
  expected[0] = static_cast<char>(header.size());
  EXPECT_EQ(Bytes(Path("x")), expected + header + "pqxyz");
}

TEST_F(SafetensorsWriterTest, DataAreAlignedToTheirElements) {
  const Tensors tensors = {{"bytes", MakeArray(ElementType::kU8, {5}, 0)},
                           {"floats", MakeArray(ElementType::kF32, {3}, 0)},
                           {"more bytes", MakeArray(ElementType::kU8, {1}, 0)},
                           {"doubles", MakeArray(ElementType::kF64, {1}, 0)}};
  WriteSafetensors(Path("x"), tensors);
  std::vector<std::string> names;
  const SafetensorsFile file(Path("x"));
  for (const TensorInfo& info : file.Tensors()) names.push_back(info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"doubles", "floats", "bytes", "more bytes"}));
  uint64_t length = 0;
  const std::string bytes = Bytes(Path("x"));
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ(length % 8, 0u);
}

TEST_F(SafetensorsWriterTest, NamesAndMetadataReadBackWhateverTheyHold) {
  const Texts metadata = {
      {"config", "a = \"b\"\n[c]\t# \\ \x01 ü"}, {"", ""}, {"step", "12"}, {"a/b.c", "{}"}};
  const Tensors tensors = {{"quote\" \\ newline\n ä", MakeArray(ElementType::kU8, {2}, 1)},
                           {"empty", MakeArray(ElementType::kF32, {0, 4}, 0)}};
  WriteSafetensors(Path("x"), tensors, metadata);
  const SafetensorsFile file(Path("x"));
  EXPECT_EQ(file.Metadata(), metadata);
  for (const auto& [name, array] : tensors) ExpectEqual(file.Read(name), array);
}

TEST_F(SafetensorsWriterTest, NothingAtAllIsAFileToo) {
  WriteSafetensors(Path("x"), {});
  EXPECT_TRUE(SafetensorsFile(Path("x")).Tensors().empty());
}

TEST_F(SafetensorsWriterTest, AFailureLeavesTheOldFile) {
  Put("x", "old");
  const Tensors bad_name = {{"caf\xe9", MakeArray(ElementType::kU8, {1}, 0)}};
  ExpectMessage(ErrorOf([&] { WriteSafetensors(Path("x"), bad_name); }),
                {Path("x").string(), "UTF-8"});
  ExpectMessage(ErrorOf([&] {
                  WriteSafetensors(Path("x"), {}, Texts{{"path", "caf\xe9"}});
                }),
                {Path("x").string(), "'path' is not UTF-8"});
  EXPECT_EQ(Bytes(Path("x")), "old");
  EXPECT_EQ(Names(), std::vector<std::string>{"x"});
  ExpectMessage(ErrorOf([&] { WriteSafetensors(Path("no/x"), {}); }), {"no/x"});
}

TEST_F(SafetensorsWriterTest, BrokenContractsAbort) {
  Tensors tensors = {{"a", MakeArray(ElementType::kU8, {1}, 0)},
                     {"a", MakeArray(ElementType::kU8, {1}, 0)}};
  EXPECT_DEATH(WriteSafetensors(Path("x"), tensors), "tensor 'a' twice");
  tensors.pop_back();
  EXPECT_DEATH(WriteSafetensors(Path("x"), tensors, Texts{{"k", "1"}, {"k", "2"}}),
               "metadata 'k' twice");
  tensors[0].second.bytes.clear();
  EXPECT_DEATH(WriteSafetensors(Path("x"), tensors), "has 0 bytes");
  tensors[0] = {"__metadata__", MakeArray(ElementType::kU8, {1}, 0)};
  EXPECT_DEATH(WriteSafetensors(Path("x"), tensors), "__metadata__");
}

}  // namespace
}  // namespace numsim
