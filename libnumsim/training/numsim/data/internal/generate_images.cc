// Synthetic images of classes. All float64 operations have a fixed order and elementary functions
// come from base/elementary.h, so the bytes are the same on every platform.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "numsim/base/elementary.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/data/image_set.h"
#include "numsim/random/distributions.h"

namespace numsim {
namespace {

constexpr uint64_t kPatternStream = ~uint64_t{0};
constexpr size_t kMaxPixels = size_t{1} << 20;  // per image
constexpr size_t kImagesOfAThread = 16;         // minimum per thread

// A pattern is a sum of waves that are periodic in the image, so a shifted pattern can wrap around.
constexpr size_t kWaves = 8;
constexpr double kMaxCycles = 3;
constexpr size_t kDrawsOfAWave = 4;

// Grey levels: the mean, and the standard deviations of patterns and of noise.
constexpr double kGrey = 128;
constexpr double kPatternLevels = 40;
constexpr double kNoiseLevels = 32;
constexpr double kMaxMix = 0.45;   // maximum weight of the other class
constexpr size_t kShiftPart = 8;   // a shift is at most 1 / kShiftPart of the side length
constexpr size_t kImageWords = 8;  // random words per image before its noise; must be even

// Returns a value in (0, 1).
double Uniform(RandomStream stream, uint64_t index) {
  return (RandomWord(stream, index) + 0.5) * 0x1p-32;
}

// Maps u in (0, 1) to an integer in [-limit, limit].
ptrdiff_t UniformShift(double u, size_t limit) {
  return static_cast<ptrdiff_t>(std::floor(u * static_cast<double>(2 * limit + 1))) -
         static_cast<ptrdiff_t>(limit);
}

struct Wave {
  double amplitude, phase;
  double row_cycles, col_cycles;  // integers; row_cycles may be negative
};

Wave DrawWave(RandomStream stream, uint64_t first) {
  const auto u = [&](uint64_t i) { return Uniform(stream, first + i); };
  Wave wave{};
  wave.amplitude = (0.5 + u(0)) * std::sqrt(2.0 / kWaves);
  wave.phase = u(1);
  wave.row_cycles = std::floor(u(2) * (2 * kMaxCycles + 1)) - kMaxCycles;
  wave.col_cycles = std::floor(u(3) * (kMaxCycles + 1));
  return wave;
}

// Returns the patterns of all classes, one after another. Their mean square is about one.
std::vector<double> DrawPatterns(uint64_t seed, size_t rows, size_t cols, size_t classes) {
  std::vector<double> patterns(classes * rows * cols);
  for (size_t k = 0; k < classes; ++k) {
    const std::span pattern = std::span(patterns).subspan(k * rows * cols, rows * cols);
    for (size_t w = 0; w < kWaves; ++w) {
      const Wave wave = DrawWave({seed, kPatternStream}, (k * kWaves + w) * kDrawsOfAWave);
      for (size_t i = 0; i < pattern.size(); ++i) {
        const size_t row = i / cols, col = i % cols;
        const double turns =
            wave.phase + wave.row_cycles * static_cast<double>(row) / static_cast<double>(rows) +
            wave.col_cycles * static_cast<double>(col) / static_cast<double>(cols);
        pattern[i] += wave.amplitude * SinCos2Pi(turns - std::floor(turns)).cos;
      }
    }
  }
  return patterns;
}

// Returns `position` + `shift`, wrapped around into [0, size). Requires |shift| < size.
size_t Wrapped(size_t position, ptrdiff_t shift, size_t size) {
  const size_t moved = position + static_cast<size_t>(shift + static_cast<ptrdiff_t>(size));
  return moved % size;
}

class Generator {
 public:
  Generator(RandomStream stream, size_t rows, size_t cols, size_t classes)
      : stream_(stream),
        rows_(rows),
        cols_(cols),
        classes_(classes),
        draws_((kImageWords + rows * cols + 63) / 64 * 64),
        patterns_(DrawPatterns(stream.seed, rows, cols, classes)) {}

  // Writes image `index`. `noise` is scratch space with one element per pixel.
  void Write(size_t index, std::span<float> noise, std::span<uint8_t> image) const {
    const uint64_t first = index * draws_;
    const auto u = [&](uint64_t i) { return Uniform(stream_, first + i); };
    const ptrdiff_t down = UniformShift(u(0), rows_ / kShiftPart);
    const ptrdiff_t right = UniformShift(u(1), cols_ / kShiftPart);
    const double contrast = (0.5 + u(2)) * kPatternLevels;
    const double mix = kMaxMix * u(3);
    const size_t label = index % classes_;
    const size_t others = std::max<size_t>(classes_ - 1, 1);
    const size_t step = 1 + static_cast<size_t>(u(4) * static_cast<double>(others));
    const double* const own = Pattern(label);
    const double* const other = Pattern((label + step) % classes_);
    FillNormal(stream_, first + kImageWords, noise);
    for (size_t r = 0; r < rows_; ++r) {
      const size_t source_row = Wrapped(r, -down, rows_) * cols_;
      for (size_t c = 0; c < cols_; ++c) {
        const size_t source = source_row + Wrapped(c, -right, cols_);
        const double pattern = (1 - mix) * own[source] + mix * other[source];
        const double noise_here = static_cast<double>(noise[r * cols_ + c]);
        const double level = kGrey + contrast * pattern + kNoiseLevels * noise_here;
        image[r * cols_ + c] =
            static_cast<uint8_t>(std::clamp(std::floor(level + 0.5), 0.0, 255.0));
      }
    }
  }

 private:
  const double* Pattern(size_t label) const { return patterns_.data() + label * rows_ * cols_; }

  RandomStream stream_;
  size_t rows_, cols_, classes_;
  uint64_t draws_;  // random words per image
  std::vector<double> patterns_;
};

}  // namespace

ImageSet GenerateImages(
    RandomStream stream, size_t count, size_t rows, size_t cols, size_t classes) {
  NUMSIM_REQUIRE(
      classes >= 1 && classes <= 256, "GenerateImages: {} classes, expected 1 to 256", classes);
  NUMSIM_REQUIRE(rows >= 1 && cols >= 1 && rows <= kMaxPixels / cols,
                 "GenerateImages: {} x {} pixels, expected at least 1 and at most {}",
                 rows,
                 cols,
                 kMaxPixels);
  const size_t pixels = rows * cols;
  NUMSIM_REQUIRE(count <= std::numeric_limits<size_t>::max() / pixels,
                 "GenerateImages: {} images are more than an array can have",
                 count);
  ImageSet set{count, rows, cols, classes, {}, {}};
  set.pixels.resize(count * pixels);
  set.labels.resize(count);
  const Generator generator(stream, rows, cols, classes);
  ParallelFor(count, kImagesOfAThread, [&](size_t begin, size_t end) {
    std::vector<float> noise(pixels);
    for (size_t i = begin; i < end; ++i) {
      generator.Write(i, noise, std::span(set.pixels).subspan(i * pixels, pixels));
      set.labels[i] = static_cast<uint8_t>(i % classes);
    }
  });
  return set;
}

}  // namespace numsim
