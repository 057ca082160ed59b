// Labelled grey-scale images: read from a folder of idx files, or generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "numsim/random/streams.h"

namespace numsim {

// `count` images of `rows` x `cols` pixels, one after another, row by row; 0 is black, 255 white.
// pixels.size() == count * rows * cols and labels.size() == count, each label below `classes`.
struct ImageSet {
  size_t count = 0;
  size_t rows = 0;
  size_t cols = 0;
  size_t classes = 0;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
};

// Reads a set in the files that MNIST [IDX] and Fashion-MNIST [FashionMNIST] come in. The folder
// holds train-images-idx3-ubyte and train-labels-idx1-ubyte, or with `train` false the two files
// whose names begin with t10k; each under that name or with .gz behind it (the plain name is taken
// where both are there). Whether a file is compressed is told by its content. `classes` is the
// largest label plus one. Throws Error naming the folder or file where one is missing or broken
// (see idx.h), where there is no image, or where images and labels differ in number.
ImageSet ReadIdxImages(const std::filesystem::path& folder, bool train);

// Synthetic images, a pure function of the arguments. Image i has label i mod classes, so labels
// are balanced (their numbers differ by one at most); a caller who wants another order shuffles.
// Each class has one smooth pattern, drawn from stream.seed alone: sets of one seed and different
// stream.stream are further images of the same classes, such as a training and a test set. An image
// is its class's pattern, shifted by up to an eighth of the height and width, mixed with the
// pattern of another class, times a random contrast, plus normal noise for each pixel, rounded and
// clipped to 0 .. 255. A linear classifier of 28 x 28 pixels and 10 classes is right about nine
// times in ten.
// Required: rows, cols >= 1; rows * cols <= 2^20; 1 <= classes <= 256; count * rows * cols fits
// size_t. These are a caller's own numbers: the program stops where they are broken.
ImageSet GenerateImages(
    RandomStream stream, size_t count, size_t rows, size_t cols, size_t classes);

}  // namespace numsim
