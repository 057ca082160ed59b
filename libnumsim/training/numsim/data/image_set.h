// Labelled grey-scale images, either read from a folder of idx files or generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "numsim/random/streams.h"

namespace numsim {

// Holds `count` images of `rows` x `cols` pixels, one after another in row-major order; 0 is black
// and 255 white. pixels.size() == count * rows * cols, labels.size() == count, and each label is
// below `classes`.
struct ImageSet {
  size_t count = 0;
  size_t rows = 0;
  size_t cols = 0;
  size_t classes = 0;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
};

// Reads the training or test set from the idx files of MNIST [IDX] or Fashion-MNIST [FashionMNIST].
// With `train` true, the folder must hold train-images-idx3-ubyte and train-labels-idx1-ubyte; with
// `train` false, the two files whose names begin with t10k instead. Each file may also have the
// ending .gz; the plain name wins if both exist. The content of a file, not its name, decides
// whether it is decompressed. `classes` is the largest label plus one. Throws Error naming the
// folder or file if one is missing or malformed (see ReadIdx in idx.h), if there are no images, or
// if the numbers of images and labels differ.
ImageSet ReadIdxImages(const std::filesystem::path& folder, bool train);

// Returns synthetic images, a pure function of the arguments. Image i has label i mod classes, so
// the class sizes differ by at most one; a caller who wants another order must shuffle. Each class
// has one smooth pattern that depends on stream.seed alone: sets with the same seed but different
// stream.stream hold different images of the same classes, for example a training and a test set.
// An image is the pattern of its class, shifted by up to an eighth of the height and width, mixed
// with the pattern of another class and multiplied by a random contrast; then normal noise is added
// to each pixel, and the result is rounded and clipped to 0 .. 255. A linear classifier on 28 x 28
// pixels and 10 classes is right about nine times in ten.
// Requires rows, cols >= 1; rows * cols <= 2^20; 1 <= classes <= 256; count * rows * cols fits
// size_t. Throws Error otherwise.
ImageSet GenerateImages(
    RandomStream stream, size_t count, size_t rows, size_t cols, size_t classes);

}  // namespace numsim
