#include "tests/reference/models/naive_language_model.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace numsim {
namespace {

using Vector = std::vector<double>;

class NaiveModel {
 public:
  NaiveModel(const ModelConfig& config, ParameterList<double>& parameters)
      : config_(config), parameters_(parameters), llama_(config.kind == ModelKind::kLlama) {}

  // Sum of the losses of one sequence.
  double SequenceLoss(const int32_t* tokens, const int32_t* targets, size_t length) {
    std::vector<Vector> x(length);
    for (size_t t = 0; t < length; ++t) {
      x[t] = Row("embedding.tokens", tokens[t]);
      if (!llama_) Add(x[t], Row("embedding.positions", t));
    }
    for (size_t n = 0; n < config_.layers; ++n) Block("blocks." + std::to_string(n), x);
    double loss = 0;
    for (size_t t = 0; t < length; ++t) {
      if (targets[t] < 0) continue;
      const Vector logits = Linear("head", Norm("final_norm", x[t]), false);
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit);
      loss += std::log(sum) - logits[static_cast<size_t>(targets[t])];
    }
    return loss;
  }

 private:
  Vector Row(const std::string& name, size_t row) {
    const Parameter<double>* const parameter = parameters_.Find(name);
    if (parameter == nullptr) throw std::out_of_range(name);
    const In<double> view = parameter->value.View();
    return {view.Row(row), view.Row(row) + view.cols};
  }

  static void Add(Vector& x, const Vector& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  void AddBranch(Vector& x, Vector branch, const std::string& name) {
    if (config_.layer_scale) {
      const Vector gain = Row(name + ".scale", 0);
      for (size_t i = 0; i < branch.size(); ++i) branch[i] *= gain[i];
    }
    Add(x, branch);
  }

  Vector Linear(const std::string& name, const Vector& x, bool bias) {
    Vector y(parameters_.Find(name + ".weight")->value.View().rows);
    for (size_t j = 0; j < y.size(); ++j) {
      const Vector w = Row(name + ".weight", j);
      for (size_t i = 0; i < x.size(); ++i) y[j] += w[i] * x[i];
    }
    if (bias) Add(y, Row(name + ".bias", 0));
    return y;
  }

  Vector Norm(const std::string& name, Vector x) {
    const Vector gain = Row(name + ".gain", 0);
    const double n = static_cast<double>(x.size());
    double mean = 0, square = 0;
    if (!llama_) {
      for (const double v : x) mean += v / n;
    }
    for (double& v : x) v -= mean;
    for (const double v : x) square += v * v / n;
    for (size_t i = 0; i < x.size(); ++i)
      x[i] *= gain[i] / std::sqrt(square + config_.norm_epsilon);
    if (!llama_) Add(x, Row(name + ".bias", 0));
    return x;
  }

  // A head's query or key: columns `begin` ... of qkv.
  Vector Head(const std::string& norm, const Vector& qkv, size_t begin, size_t position) {
    const size_t dim = config_.width / config_.heads;
    Vector head(qkv.begin() + static_cast<ptrdiff_t>(begin),
                qkv.begin() + static_cast<ptrdiff_t>(begin + dim));
    if (config_.qk_norm) head = Norm(norm, head);
    for (size_t j = 0; llama_ && j < dim / 2; ++j) {
      const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(dim);
      const double angle = static_cast<double>(position) * std::pow(config_.rope_base, exponent);
      const double a = head[j], b = head[j + dim / 2];
      head[j] = a * std::cos(angle) - b * std::sin(angle);
      head[j + dim / 2] = a * std::sin(angle) + b * std::cos(angle);
    }
    return head;
  }

  void Block(const std::string& name, std::vector<Vector>& x) {
    const size_t width = config_.width, dim = width / config_.heads;
    const std::string attention = name + ".attention", mlp = name + ".mlp";
    std::vector<Vector> qkv;
    for (const Vector& row : x) {
      qkv.push_back(Linear(attention + ".qkv", Norm(attention + ".norm", row), !llama_));
    }
    for (size_t t = 0; t < x.size(); ++t) {
      Vector core(width);
      for (size_t h = 0; h < width; h += dim) {
        const Vector q = Head(attention + ".query_norm", qkv[t], h, t);
        Vector weights;
        double sum = 0;
        for (size_t s = 0; s <= t; ++s) {
          const Vector k = Head(attention + ".key_norm", qkv[s], width + h, s);
          double score = 0;
          for (size_t j = 0; j < dim; ++j) score += q[j] * k[j];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
          sum += weights.back();
        }
        for (size_t s = 0; s <= t; ++s) {
          for (size_t j = 0; j < dim; ++j) {
            core[h + j] += weights[s] / sum * qkv[s][2 * width + h + j];
          }
        }
      }
      AddBranch(x[t], Linear(attention + ".out", core, !llama_), attention);
    }
    for (Vector& row : x) AddBranch(row, Mlp(mlp, Norm(mlp + ".norm", row)), mlp);
  }

  Vector Mlp(const std::string& name, const Vector& x) {
    if (llama_) {
      const Vector up = Linear(name + ".gate_up", x, false);
      Vector hidden(up.size() / 2);
      for (size_t i = 0; i < hidden.size(); ++i) {
        hidden[i] = up[i] / (1 + std::exp(-up[i])) * up[hidden.size() + i];
      }
      return Linear(name + ".down", hidden, false);
    }
    Vector hidden = Linear(name + ".up", x, true);
    for (double& v : hidden) {
      v = v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    }
    return Linear(name + ".down", hidden, true);
  }

  const ModelConfig& config_;
  ParameterList<double>& parameters_;
  bool llama_;
};

}  // namespace

double NaiveLanguageLoss(const ModelConfig& config,
                         ParameterList<double>& parameters,
                         const Batch& batch) {
  NaiveModel model(config, parameters);
  double sum = 0;
  for (size_t b = 0; b < batch.examples; ++b) {
    const size_t first = b * batch.length;
    sum += model.SequenceLoss(&batch.tokens[first], &batch.targets[first], batch.length);
  }
  size_t counted = 0;
  for (const int32_t target : batch.targets) counted += target >= 0 ? 1 : 0;
  return sum / static_cast<double>(counted);
}

}  // namespace numsim
