// Measures one trial of `quantization-variance`: quantises pairs of vectors with every treatment
// and compares their inner products with the exact ones.
#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/quantization_variance/input.h"
#include "experiments/quantization_variance/quantization_variance.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::quantization_variance {
namespace {

// Random streams of a seed: operands, then the random bits of stochastic rounding. All lengths,
// sources and treatments use the same streams, so trials of a seed share their random numbers.
// Stream 2 draws the segments of tensors (input.cc).
constexpr uint64_t kStreamU = 0;
constexpr uint64_t kStreamV = 1;
constexpr uint64_t kStreamRoundingU = 3;
constexpr uint64_t kStreamRoundingV = 4;

// A batch of operands: `rows` vectors of length k each.
struct Batch {
  MatrixShape shape;
  std::vector<float> u, v;
};

// Source of the operands: a distribution, or the rows of the tensors of --input.
class OperandSource {
 public:
  OperandSource(const Settings& settings, const Trial& trial) : seed_(trial.seed) {
    if (HasInput(settings)) {
      input_.emplace(settings, trial.seed, SweepLengths(settings).back());
    } else {
      distribution_ = ParseDistribution(trial.parameters.at("source"));
    }
  }

  // Fills `batch` with the pairs first_pair .. first_pair + rows - 1.
  void Fill(size_t first_pair, Batch& batch) const {
    const size_t k = batch.shape.cols;
    if (!input_) {
      const uint64_t first = uint64_t{first_pair} * k;
      numsim::Fill(distribution_, {seed_, kStreamU}, first, batch.u);
      numsim::Fill(distribution_, {seed_, kStreamV}, first, batch.v);
      return;
    }
    for (size_t r = 0; r < batch.shape.rows; ++r) {
      input_->FillPair(first_pair + r, k, &batch.u[r * k], &batch.v[r * k]);
    }
  }

 private:
  uint64_t seed_;
  Distribution distribution_ = Distribution::kNormal;
  std::optional<InputRows> input_;
};

// Sums over the elements of one pair of vectors.
struct PairSums {
  double product = 0;            // <u, v>
  double quantized_product = 0;  // <u^, v^>
  double u_square = 0, v_square = 0;
  double u_error_square = 0, v_error_square = 0;
  double u_error_signal = 0, v_error_signal = 0;  // sum of error times element
  size_t underflow = 0, nonzero = 0;
};

// Float64 sums are kept as kLanes interleaved partial sums that are added in a fixed order at the
// end, so that the compiler can vectorise them without changing the result.
constexpr size_t kLanes = 4;

double SumLanes(const double (&lanes)[kLanes]) {
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

PairSums SumPair(const float* u, const float* v, const float* uq, const float* vq, size_t k) {
  double p[kLanes] = {}, q[kLanes] = {}, uu[kLanes] = {}, vv[kLanes] = {}, du[kLanes] = {},
         dv[kLanes] = {}, su[kLanes] = {}, sv[kLanes] = {};
  const auto add = [&](size_t i, size_t l) {
    const double a = static_cast<double>(u[i]), b = static_cast<double>(v[i]);
    const double aq = static_cast<double>(uq[i]), bq = static_cast<double>(vq[i]);
    const double ea = aq - a, eb = bq - b;
    p[l] += a * b;
    q[l] += aq * bq;
    uu[l] += a * a;
    vv[l] += b * b;
    du[l] += ea * ea;
    dv[l] += eb * eb;
    su[l] += ea * a;
    sv[l] += eb * b;
  };
  size_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) add(i + l, l);
  }
  for (; i < k; ++i) add(i, 0);
  PairSums sums{SumLanes(p),
                SumLanes(q),
                SumLanes(uu),
                SumLanes(vv),
                SumLanes(du),
                SumLanes(dv),
                SumLanes(su),
                SumLanes(sv),
                0,
                0};
  for (size_t j = 0; j < k; ++j) {
    sums.nonzero += (u[j] != 0) + (v[j] != 0);
    sums.underflow += (u[j] != 0 && uq[j] == 0) + (v[j] != 0 && vq[j] == 0);
  }
  return sums;
}

// Statistics of one treatment over all pairs of a trial.
class TreatmentStatistics {
 public:
  void Add(const PairSums& s) {
    const double error = s.quantized_product - s.product;
    error_.Add(error);
    product_.Add(s.product);
    quantized_.Add(s.quantized_product);
    // E[q^2] - E[p^2] is the added variance, for products of mean zero.
    added_.Add(s.quantized_product * s.quantized_product - s.product * s.product);
    error_product_.Add(error, s.product);
    error_square_ += error * error;
    product_square_ += s.product * s.product;
    total_.u_square += s.u_square;
    total_.v_square += s.v_square;
    total_.u_error_square += s.u_error_square;
    total_.v_error_square += s.v_error_square;
    total_.u_error_signal += s.u_error_signal;
    total_.v_error_signal += s.v_error_signal;
    total_.underflow += s.underflow;
    total_.nonzero += s.nonzero;
  }

  // Appends the cells from `var_product` to `underflow_share`.
  void AppendCells(size_t k, Row& cells) const {
    const double elements = static_cast<double>(k) * static_cast<double>(error_.Count());
    const double sigma_u2 = total_.u_square / elements;
    const double sigma_v2 = total_.v_square / elements;
    const double error_squares = total_.u_error_square + total_.v_error_square;
    const double sigma_q2 = error_squares / (2 * elements);
    const double prediction = static_cast<double>(k) * sigma_q2 * (sigma_u2 + sigma_v2 + sigma_q2);
    const Estimate variance = error_.VarianceEstimate();
    const Estimate mean = error_.MeanEstimate();
    const Estimate added = added_.MeanEstimate();
    const double signal = total_.u_square + total_.v_square;
    const double correlation =
        (total_.u_error_signal + total_.v_error_signal) / std::sqrt(error_squares * signal);
    for (const double value : {product_.Variance(),
                               quantized_.Variance(),
                               variance.value,
                               variance.low,
                               variance.high,
                               mean.value,
                               mean.low,
                               mean.high,
                               sigma_u2,
                               sigma_v2,
                               sigma_q2,
                               prediction,
                               variance.value / prediction,
                               variance.low / prediction,
                               variance.high / prediction,
                               added.value / prediction,
                               added.low / prediction,
                               added.high / prediction,
                               std::sqrt(error_square_ / product_square_),
                               error_product_.Correlation(),
                               correlation,
                               static_cast<double>(total_.underflow) /
                                   static_cast<double>(std::max<size_t>(total_.nonzero, 1))}) {
      cells.push_back(value);
    }
  }

 private:
  Moments error_, product_, quantized_, added_;
  Comoments error_product_;
  double error_square_ = 0, product_square_ = 0;
  PairSums total_;
};

QuantizeOptions OptionsOf(const Treatment& treatment,
                          uint64_t seed,
                          uint64_t stream,
                          uint64_t first) {
  QuantizeOptions options;
  options.format = treatment.format.spec;
  options.rounding = treatment.rounding;
  options.layout = treatment.layout;
  options.scale_rule = UsualScaleRule(treatment.format.spec);
  options.random = {{seed, stream}, first};
  return options;
}

void MeasureBatch(const Batch& batch,
                  const Treatment& treatment,
                  uint64_t seed,
                  size_t first_pair,
                  Batch& quantized,
                  TreatmentStatistics& statistics) {
  const size_t k = batch.shape.cols;
  const uint64_t first = uint64_t{first_pair} * k;
  FakeQuantize(
      batch.u, batch.shape, OptionsOf(treatment, seed, kStreamRoundingU, first), quantized.u);
  FakeQuantize(
      batch.v, batch.shape, OptionsOf(treatment, seed, kStreamRoundingV, first), quantized.v);
  for (size_t r = 0; r < batch.shape.rows; ++r) {
    statistics.Add(
        SumPair(&batch.u[r * k], &batch.v[r * k], &quantized.u[r * k], &quantized.v[r * k], k));
  }
}

void AddRowMaxima(const Batch& batch, Moments& maxima) {
  std::vector<float> absmax(batch.shape.rows);
  for (const std::vector<float>* values : {&batch.u, &batch.v}) {
    Absmax(HostMatrix(*values, batch.shape), {Granularity::kRow, 0}, absmax);
    for (const float x : absmax) maxima.Add(static_cast<double>(x));
  }
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const size_t k = std::stoull(trial.parameters.at("k"));
  const auto pairs = static_cast<size_t>(settings.GetInteger("pairs", 4, 1'000'000));
  const auto batch_rows = static_cast<size_t>(settings.GetInteger("tensor-rows", 1, 4096));
  const std::vector<Treatment> treatments = Treatments(settings, trial);
  const OperandSource source(settings, trial);
  std::vector<TreatmentStatistics> statistics(treatments.size());
  Moments maxima;
  Batch batch, quantized;
  for (size_t first = 0; first < pairs; first += batch_rows) {
    batch.shape = {std::min(batch_rows, pairs - first), k};
    for (Batch* b : {&batch, &quantized}) {
      b->u.resize(batch.shape.Elements());
      b->v.resize(batch.shape.Elements());
    }
    source.Fill(first, batch);
    AddRowMaxima(batch, maxima);
    for (size_t t = 0; t < treatments.size(); ++t) {
      MeasureBatch(batch, treatments[t], trial.seed, first, quantized, statistics[t]);
    }
  }
  Rows rows;
  for (size_t t = 0; t < treatments.size(); ++t) {
    Row cells = {trial.parameters.at("source"),
                 treatments[t].format.name,
                 ToString(treatments[t].layout),
                 std::string(ToString(treatments[t].rounding.mode)),
                 uint64_t{k},
                 trial.seed,
                 trial.parameters.at("sweep"),
                 uint64_t{pairs}};
    statistics[t].AppendCells(k, cells);
    cells.push_back(maxima.Mean());
    rows["variance"].push_back(std::move(cells));
  }
  return rows;
}

}  // namespace numsim::experiments::quantization_variance
