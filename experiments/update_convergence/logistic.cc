#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/update_convergence/problem.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::update_convergence {
namespace {

// Number of images whose outputs are computed at a time.
constexpr size_t kImagesAtOnce = 512;
// Exponentials of smaller numbers count as zero: Exp does not support them, and in float64 they are
// close to underflow.
constexpr double kLeastExponent = -690;

// Replaces the outputs of one image by its probabilities, minus 1 for the label, and returns its
// cross-entropy. If an output is NaN or infinite, all results are NaN.
double ProbabilityErrors(std::span<float> outputs, size_t label) {
  double largest = -std::numeric_limits<double>::infinity();
  bool finite = true;
  for (const float output : outputs) {
    largest = std::max(largest, static_cast<double>(output));
    finite &= std::isfinite(output);
  }
  if (!finite) {
    std::fill(outputs.begin(), outputs.end(), std::numeric_limits<float>::quiet_NaN());
    return std::numeric_limits<double>::quiet_NaN();
  }
  double sum = 0;
  const auto power = [&](float output) {
    const double x = static_cast<double>(output) - largest;
    return x < kLeastExponent ? 0 : Exp(x);
  };
  for (const float output : outputs) sum += power(output);
  const double loss = Log(sum) - (static_cast<double>(outputs[label]) - largest);
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k] = static_cast<float>(power(outputs[k]) / sum - (k == label ? 1 : 0));
  }
  return loss;
}

class Logistic final : public TrainingProblem {
 public:
  Logistic(const ImageSet& images, const LogisticOptions& options)
      : seed_(options.seed),
        classes_(images.classes),
        length_(images.rows * images.cols + 1),
        labels_(images.labels),
        features_(Features(images)),
        batch_features_(options.batch * length_),
        batch_labels_(options.batch),
        outputs_(std::max(options.batch, kImagesAtOnce) * classes_) {
    NUMSIM_CHECK(options.batch >= 1 && !labels_.empty(), "no images");
    rows_ = classes_;
    cols_ = length_;
    start_.resize(rows_ * cols_);
    FillNormal({seed_, kStreamStart}, 0, start_);
    for (size_t i = 0; i < start_.size(); ++i) {
      const bool bias = i % cols_ == cols_ - 1;
      const double w = options.weight_scale * static_cast<double>(start_[i]);
      start_[i] = bias ? 0.0f : static_cast<float>(w);
    }
    ScaleGradient();
  }

  void Prepare(uint64_t step) override {
    for (size_t b = 0; b < batch_labels_.size(); ++b) {
      const uint64_t word = RandomWord({seed_, kStreamBatch + step}, b);
      const size_t image = static_cast<size_t>(word * labels_.size() >> 32);
      batch_labels_[b] = labels_[image];
      std::copy_n(features_.begin() + static_cast<ptrdiff_t>(image * length_),
                  length_,
                  batch_features_.begin() + static_cast<ptrdiff_t>(b * length_));
    }
  }

  void Gradient(std::span<const float> weights, std::span<float> gradient) override {
    AddUpGradient(batch_features_, batch_labels_, weights, gradient);
    for (float& g : gradient) g *= scale_;
  }

  double Loss(std::span<const float> weights) override {
    double sum = 0;
    for (size_t first = 0; first < labels_.size(); first += kImagesAtOnce) {
      const size_t count = std::min(kImagesAtOnce, labels_.size() - first);
      sum += Errors(std::span(features_).subspan(first * length_, count * length_),
                    std::span(labels_).subspan(first, count),
                    weights);
    }
    return sum / static_cast<double>(labels_.size());
  }

 private:
  static std::vector<float> Features(const ImageSet& images) {
    const size_t pixels = images.rows * images.cols;
    std::vector<float> features(images.count * (pixels + 1));
    for (size_t i = 0; i < images.count; ++i) {
      for (size_t j = 0; j < pixels; ++j) {
        features[i * (pixels + 1) + j] = static_cast<float>(images.pixels[i * pixels + j]) / 255.0f;
      }
      features[i * (pixels + 1) + pixels] = 1;
    }
    return features;
  }

  static GemmOperand Operand(std::span<const float> values,
                             size_t rows,
                             size_t inner,
                             bool transposed) {
    return {.format = FindFormat("fp32")->spec,
            .values = values,
            .rows = rows,
            .inner = inner,
            .transposed = transposed};
  }

  // Sets outputs_ to probabilities minus labels of the images; returns the sum of their losses.
  double Errors(std::span<const float> features,
                std::span<const uint8_t> labels,
                std::span<const float> weights) {
    const std::span<float> outputs = std::span(outputs_).first(labels.size() * classes_);
    Gemm(Operand(features, labels.size(), length_, false),
         Operand(weights, classes_, length_, false),
         rule_,
         outputs);
    double sum = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      sum += ProbabilityErrors(outputs.subspan(i * classes_, classes_), labels[i]);
    }
    return sum;
  }

  // Sets `gradient` to the mean gradient over these images.
  void AddUpGradient(std::span<const float> features,
                     std::span<const uint8_t> labels,
                     std::span<const float> weights,
                     std::span<float> gradient) {
    Errors(features, labels, weights);
    const size_t count = labels.size();
    Gemm(Operand(std::span(outputs_).first(count * classes_), classes_, count, true),
         Operand(features, length_, count, true),
         rule_,
         gradient);
    const float share = 1.0f / static_cast<float>(count);
    for (float& g : gradient) g *= share;
  }

  // Sets scale_ so that the mean square of the gradient over all images is 1 at the start.
  void ScaleGradient() {
    std::vector<float> part(start_.size());
    std::vector<double> sum(start_.size());
    for (size_t first = 0; first < labels_.size(); first += kImagesAtOnce) {
      const size_t count = std::min(kImagesAtOnce, labels_.size() - first);
      AddUpGradient(std::span(features_).subspan(first * length_, count * length_),
                    std::span(labels_).subspan(first, count),
                    start_,
                    part);
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] += static_cast<double>(count) * static_cast<double>(part[i]);
      }
    }
    double square = 0;
    for (const double g : sum) square += g * g;
    if (!(square > 0)) throw Error::Format("images: the classes cannot be told apart");
    const double mean_square = square / static_cast<double>(sum.size());
    scale_ = static_cast<float>(static_cast<double>(labels_.size()) / std::sqrt(mean_square));
  }

  uint64_t seed_;
  size_t classes_, length_;  // length_ counts the pixels and the bias
  std::vector<uint8_t> labels_;
  std::vector<float> features_;
  std::vector<float> batch_features_;
  std::vector<uint8_t> batch_labels_;
  std::vector<float> outputs_;
  AccumulationMode rule_ = ParseAccumulationMode("fp32");
  float scale_ = 1;
};

}  // namespace

std::unique_ptr<TrainingProblem> MakeLogistic(const ImageSet& images,
                                              const LogisticOptions& options) {
  return std::make_unique<Logistic>(images, options);
}

}  // namespace numsim::experiments::update_convergence
