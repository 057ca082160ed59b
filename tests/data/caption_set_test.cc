#include "numsim/data/internal/caption_set.h"

#include "numsim/data/internal/sources.h"
#include "numsim/io/npy.h"
#include "tests/data/caption_fixture.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using CaptionFolderTest = CaptionTest;

TEST_F(CaptionFolderTest, ReadsImagesAndCaptions) {
  PutImages("any-name.npy", {2, 1, 2, 3});
  Put("captions.txt", "a cat\nein K\xC3\xA4se\n");
  const CaptionFolder folder = ReadCaptionFolder(Directory());
  EXPECT_EQ(folder.set.count, 2u);
  EXPECT_EQ(folder.set.height, 1u);
  EXPECT_EQ(folder.set.width, 2u);
  EXPECT_EQ(folder.set.channels, 3u);
  EXPECT_EQ(folder.set.pixels, (std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(folder.set.captions, (std::vector<std::string>{"a cat", "ein K\xC3\xA4se"}));
  EXPECT_EQ(folder.set.concepts, (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(folder.valid.empty());
}

TEST_F(CaptionFolderTest, EqualCaptionsAreOneConcept) {
  PutImages("i.npy", {4, 1, 1, 1});
  Put("captions.txt", "b\r\na\r\nb\r\nc");
  EXPECT_EQ(ReadCaptionFolder(Directory()).set.captions[0], "b");
  EXPECT_EQ(ReadCaptionFolder(Directory()).set.concepts, (std::vector<int32_t>{0, 1, 0, 2}));
}

TEST_F(CaptionFolderTest, MetaTellsConceptsAndSplit) {
  PutImages("i.npy", {3, 1, 1, 1});
  Put("captions.txt", "x\ny\nz\n");
  Put("meta.tsv", "index\tsplit\tconcept\n0\ttrain\tq\n1\tvalid\tr\n2\ttrain\tq\n");
  CaptionFolder folder = ReadCaptionFolder(Directory());
  EXPECT_EQ(folder.set.concepts, (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(folder.valid, (std::vector<bool>{false, true, false}));
  Put("meta.tsv", "other\n0\n1\n2\n");
  folder = ReadCaptionFolder(Directory());
  EXPECT_EQ(folder.set.concepts, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_TRUE(folder.valid.empty());
}

TEST_F(CaptionFolderTest, NamesFilesAtFault) {
  const auto message = [&] { return ErrorOf([&] { ReadCaptionFolder(Directory()); }); };
  ExpectMessage(ErrorOf([&] { ReadCaptionFolder(Path("absent")); }),
                {Path("absent").string(), "not a folder"});
  ExpectMessage(message(), {Directory().string(), "0 .npy files, expected one"});
  PutImages("i.npy", {2, 1, 1, 1});
  ExpectMessage(message(), {Path("captions.txt").string()});
  Put("captions.txt", "a\n");
  ExpectMessage(message(), {Path("captions.txt").string(), "1 lines", "2 images of i.npy"});
  Put("captions.txt", "a\nb\nc\n");
  ExpectMessage(message(), {Path("captions.txt").string(), "3 lines", "2 images"});
  Put("captions.txt", "a\n\n");
  ExpectMessage(message(), {Path("captions.txt").string() + ":2: ", "empty"});
  Put("captions.txt", "a\n\xFF\n");
  ExpectMessage(message(), {Path("captions.txt").string(), "offset 2", "UTF-8"});
  Put("captions.txt", "a\nb\n");
  EXPECT_EQ(message(), "no error");
  PutImages("j.npy", {2, 1, 1, 1});
  ExpectMessage(message(), {Directory().string(), "2 .npy files, expected one"});
}

TEST_F(CaptionFolderTest, RefusesOtherArrays) {
  Put("captions.txt", "a\nb\n");
  const auto message = [&] { return ErrorOf([&] { ReadCaptionFolder(Directory()); }); };
  PutImages("i.npy", {2, 1, 3});
  ExpectMessage(message(), {Path("i.npy").string(), "uint8 of shape (2, 1, 3)", "channels"});
  PutImages("i.npy", {0, 4, 4, 3});
  ExpectMessage(message(), {Path("i.npy").string(), "(0, 4, 4, 3)", "at least one"});
  WriteNpy(Path("i.npy"), {ElementType::kF32, {1, 1, 1, 1}, std::vector<std::byte>(4)});
  ExpectMessage(message(), {Path("i.npy").string(), "float32", "expected uint8"});
  PutImages("i.npy", {2, 1, 1, 1});
  Put("i.npy", Bytes(Path("i.npy")).substr(0, 129));
  ExpectMessage(message(), {Path("i.npy").string()});
  Put("i.npy", "nothing");
  ExpectMessage(message(), {Path("i.npy").string()});
}

TEST_F(CaptionFolderTest, NamesTheLineOfMetaAtFault) {
  PutImages("i.npy", {2, 1, 1, 1});
  Put("captions.txt", "a\nb\n");
  const std::string meta = Path("meta.tsv").string();
  const auto message = [&](std::string_view text) {
    Put("meta.tsv", text);
    return ErrorOf([&] { ReadCaptionFolder(Directory()); });
  };
  EXPECT_EQ(message("split\tconcept\ntrain\t1\nvalid\t2\n"), "no error");
  ExpectMessage(message("split\tconcept\ntrain\t1\n"), {meta + ": 2 lines, expected 3"});
  ExpectMessage(message("split\tconcept\ntrain\t1\nvalid\t2\n\n"), {meta + ": 4 lines"});
  ExpectMessage(message("split\tconcept\ntrain\t1\nvalid\n"), {meta + ":3: 1 fields, expected 2"});
  ExpectMessage(message("split\tconcept\ntrain\t1\t\nvalid\t2\n"), {meta + ":2: 3 fields"});
  ExpectMessage(message("split\ntrain\ntest\n"), {meta + ":3: split 'test'", "train or valid"});
  ExpectMessage(message("concept\n\nb\n"), {meta + ":2: the concept is empty"});
  ExpectMessage(message("split\tsplit\ntrain\ttrain\nvalid\tvalid\n"), {meta + ":1: ", "twice"});
  ExpectMessage(message("concept\na\n\xC0\n"), {meta, "offset 10", "UTF-8"});
  ExpectMessage(message(""), {meta, "no text"});
}

}  // namespace
}  // namespace numsim
