#include "numsim/data/image_set.h"

#include <array>
#include <cstdlib>
#include <numeric>

#include "numsim/base/parallel.h"
#include "tests/data/data_fixture.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ReadIdxImagesTest = IoTest;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

const std::string& ImageFile() {
  static const std::string file = IdxHeader({3, 1, 2}) + "abcdef";
  return file;
}

const std::string& LabelFile() {
  static const std::string file = IdxHeader({3}) + std::string("\4\0\1", 3);
  return file;
}

void ExpectThreeImages(const ImageSet& set) {
  EXPECT_EQ(set.count, 3u);
  EXPECT_EQ(set.rows, 1u);
  EXPECT_EQ(set.cols, 2u);
  EXPECT_EQ(set.classes, 5u);
  EXPECT_EQ(std::string(set.pixels.begin(), set.pixels.end()), "abcdef");
  EXPECT_EQ(set.labels, (std::vector<uint8_t>{4, 0, 1}));
}

TEST_F(ReadIdxImagesTest, ReadsEitherSpellingOfEachFile) {
  Put(kImages, ImageFile());
  Put(std::string(kLabels) + ".gz", Gzip(LabelFile()));
  ExpectThreeImages(ReadIdxImages(Directory(), true));
}

TEST_F(ReadIdxImagesTest, PrefersThePlainName) {
  Put(kImages, ImageFile());
  Put(std::string(kImages) + ".gz", "broken");
  Put(kLabels, LabelFile());
  ExpectThreeImages(ReadIdxImages(Directory(), true));
}

TEST_F(ReadIdxImagesTest, ReadsTheTestSetFromItsOwnFiles) {
  Put("t10k-images-idx3-ubyte", ImageFile());
  Put("t10k-labels-idx1-ubyte", LabelFile());
  ExpectThreeImages(ReadIdxImages(Directory(), false));
  ExpectMessage(ErrorOf([&] { ReadIdxImages(Directory(), true); }),
                {Directory().string(), "neither train-images-idx3-ubyte nor", ".gz"});
}

TEST_F(ReadIdxImagesTest, NamesWhatIsMissing) {
  ExpectMessage(ErrorOf([&] { ReadIdxImages(Path("absent"), true); }),
                {Path("absent").string(), "not a folder", kImages});
  ExpectMessage(ErrorOf([&] { ReadIdxImages(Put("file", "x"), true); }), {"not a folder"});
  Put(kImages, ImageFile());
  ExpectMessage(ErrorOf([&] { ReadIdxImages(Directory(), true); }),
                {Directory().string(), "neither train-labels-idx1-ubyte nor"});
}

TEST_F(ReadIdxImagesTest, RefusesFilesThatDoNotFitEachOther) {
  Put(kLabels, LabelFile());
  const auto message = [&](std::string_view images) {
    Put(kImages, images);
    return ErrorOf([&] { ReadIdxImages(Directory(), true); });
  };
  ExpectMessage(message(IdxHeader({2, 1, 2}) + "abcd"),
                {Path(kLabels).string(), "3 labels", "2 images", kImages});
  ExpectMessage(message(IdxHeader({3, 0, 2})), {Path(kImages).string(), "(3, 0, 2)", "at least"});
  ExpectMessage(message(IdxHeader({0, 28, 28})), {Path(kImages).string(), "(0, 28, 28)"});
  ExpectMessage(message(LabelFile()), {Path(kImages).string(), "dimensions 1", "expected 3"});
  Put(kLabels, ImageFile());
  ExpectMessage(message(ImageFile()), {Path(kLabels).string(), "dimensions 3", "expected 1"});
}

TEST_F(ReadIdxImagesTest, ReadsFashionMnist) {
  const char* const data = std::getenv("NUMSIM_DATA_DIR");
  if (data == nullptr) GTEST_SKIP() << "NUMSIM_DATA_DIR is not set";
  const auto folder = std::filesystem::path(data) / "fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  for (const bool train : {true, false}) {
    const ImageSet set = ReadIdxImages(folder, train);
    EXPECT_EQ(set.count, train ? 60000u : 10000u);
    EXPECT_EQ(set.rows, 28u);
    EXPECT_EQ(set.cols, 28u);
    EXPECT_EQ(set.classes, 10u);
    EXPECT_EQ(set.pixels.size(), set.count * 784);
    ASSERT_EQ(set.labels.size(), set.count);
    std::array<size_t, 10> histogram{};
    for (const uint8_t label : set.labels) ++histogram.at(label);
    for (const size_t images : histogram) EXPECT_EQ(images, set.count / 10);
    // The mean grey level of the published training images is 72.94.
    const double sum = std::accumulate(set.pixels.begin(), set.pixels.end(), 0.0);
    EXPECT_NEAR(sum / static_cast<double>(set.pixels.size()), 72.94, train ? 0.01 : 0.5);
  }
}

// 64-bit FNV-1a.
uint64_t Hash(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

TEST(GenerateImages, BytesStayWhatTheyAre) {
  const ImageSet set = GenerateImages({7, 1}, 100, 28, 20, 10);
  ASSERT_EQ(set.pixels.size(), 100u * 28 * 20);
  EXPECT_EQ(Hash(set.pixels), 0xAA3460A7BC1C05A3u);
}

TEST(GenerateImages, BytesDoNotDependOnThreads) {
  const int threads = ThreadCount();
  SetThreadCount(1);
  const ImageSet one = GenerateImages({3, 0}, 200, 13, 9, 7);
  SetThreadCount(3);
  const ImageSet three = GenerateImages({3, 0}, 200, 13, 9, 7);
  SetThreadCount(threads);
  EXPECT_EQ(one.pixels, three.pixels);
  EXPECT_EQ(one.labels, three.labels);
}

TEST(GenerateImages, FewerImagesAreTheBeginningOfMore) {
  const ImageSet more = GenerateImages({3, 0}, 50, 13, 9, 7);
  const ImageSet fewer = GenerateImages({3, 0}, 20, 13, 9, 7);
  EXPECT_TRUE(std::equal(fewer.pixels.begin(), fewer.pixels.end(), more.pixels.begin()));
}

TEST(GenerateImages, SeedAndStreamMakeOtherImages) {
  const auto pixels = [](RandomStream stream) {
    return GenerateImages(stream, 10, 16, 16, 5).pixels;
  };
  EXPECT_NE(pixels({1, 0}), pixels({2, 0}));
  EXPECT_NE(pixels({1, 0}), pixels({1, 1}));
}

TEST(GenerateImages, LabelsAreBalanced) {
  for (const size_t classes : {size_t{1}, size_t{2}, size_t{10}, size_t{256}}) {
    const ImageSet set = GenerateImages({1, 0}, 515, 2, 2, classes);
    EXPECT_EQ(set.classes, classes);
    std::vector<size_t> histogram(classes);
    for (const uint8_t label : set.labels) ++histogram.at(label);
    const auto [least, most] = std::minmax_element(histogram.begin(), histogram.end());
    EXPECT_LE(*most - *least, 1u);
  }
}

TEST(GenerateImages, ServesTheSmallestSizes) {
  for (const auto& [rows, cols] :
       {std::pair<size_t, size_t>{1, 1}, {1, 17}, {17, 1}, {2, 3}, {8, 8}}) {
    const ImageSet set = GenerateImages({1, 0}, 9, rows, cols, 3);
    EXPECT_EQ(set.pixels.size(), 9 * rows * cols);
    EXPECT_GT(*std::max_element(set.pixels.begin(), set.pixels.end()),
              *std::min_element(set.pixels.begin(), set.pixels.end()));
  }
  EXPECT_TRUE(GenerateImages({1, 0}, 0, 4, 4, 3).pixels.empty());
}

TEST(GenerateImages, GreyLevelsFillTheRangeAndClipSeldom) {
  const ImageSet set = GenerateImages({5, 0}, 500, 28, 28, 10);
  const auto share = [&](uint8_t level) {
    return static_cast<double>(std::count(set.pixels.begin(), set.pixels.end(), level)) /
           static_cast<double>(set.pixels.size());
  };
  const double sum = std::accumulate(set.pixels.begin(), set.pixels.end(), 0.0);
  EXPECT_NEAR(sum / static_cast<double>(set.pixels.size()), 127.5, 6);
  EXPECT_LT(share(0) + share(255), 0.05);
  EXPECT_GT(share(128), 0.004);
}

// Share of the images of `test` whose nearest class mean of `train`, by squared distance, is their
// own.
double NearestMeanAccuracy(const ImageSet& train, const ImageSet& test) {
  const size_t pixels = train.rows * train.cols;
  std::vector<double> sums(train.classes * pixels), counts(train.classes);
  for (size_t i = 0; i < train.count; ++i) {
    ++counts[train.labels[i]];
    for (size_t j = 0; j < pixels; ++j) {
      sums[train.labels[i] * pixels + j] += train.pixels[i * pixels + j];
    }
  }
  size_t right = 0;
  for (size_t i = 0; i < test.count; ++i) {
    std::vector<double> distances(train.classes);
    for (size_t k = 0; k < train.classes; ++k) {
      for (size_t j = 0; j < pixels; ++j) {
        const double gap = test.pixels[i * pixels + j] - sums[k * pixels + j] / counts[k];
        distances[k] += gap * gap;
      }
    }
    const auto nearest = std::min_element(distances.begin(), distances.end());
    right += nearest - distances.begin() == test.labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(test.count);
}

TEST(GenerateImages, ClassesCanBeLearnedAndAreNotTrivial) {
  for (const uint64_t seed : {1, 2, 3}) {
    const ImageSet train = GenerateImages({seed, 0}, 1000, 28, 28, 10);
    const ImageSet test = GenerateImages({seed, 1}, 500, 28, 28, 10);
    const double accuracy = NearestMeanAccuracy(train, test);
    EXPECT_GT(accuracy, 0.5) << seed;
    EXPECT_LT(accuracy, 0.98) << seed;
    // Classes belong to the seed.
    const ImageSet other = GenerateImages({seed + 10, 1}, 500, 28, 28, 10);
    EXPECT_LT(NearestMeanAccuracy(train, other), 0.35) << seed;
  }
}

}  // namespace
}  // namespace numsim
