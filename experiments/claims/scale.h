// The scale of a run beside that of the paper: the words that stand with every verdict.
#pragma once

#include <string>

namespace numsim::experiments {

// The largest training of a run, by parameters and then by tokens, and that of the paper.
struct TrainedScale {
  double parameters = 0, tokens = 0;              // 0: nothing is trained
  double paper_parameters = 0, paper_tokens = 0;  // 0: no paper is compared
};

// One word for what a verdict is about:
//   mechanism    nothing is trained (operands, single steps, algebra, times)
//   toy          a training with less than a tenth of the paper's parameters or of its tokens
//   paper scale  any other training
// Empty for a training that is compared with no paper.
inline constexpr const char* kMechanism = "mechanism";
inline constexpr const char* kToy = "toy";
inline constexpr const char* kPaperScale = "paper scale";
std::string ScaleWord(const TrainedScale& scale);

// The scale of a run.
struct RunScale {
  std::string words = {};  // "2 layers, width 64, 300 steps"
  TrainedScale trained = {};
};

// Returns the word and the size: "toy, 0.14 M / 1.6 M tokens", which are parameters and tokens;
// "mechanism" alone where nothing is trained.
std::string SizeText(const TrainedScale& scale);
std::string SizeText(const std::string& word, double parameters, double tokens);

// Returns a count rounded to two digits. Sizes are compared by it, so that a few parameters more, such as
// those of layer-scale, make no larger model.
double TwoDigits(double count);
// Returns a count with two digits and a letter: "65 k", "0.14 M", "6.7 B", "2 T"; below a thousand all
// its digits.
std::string CountText(double count);

}  // namespace numsim::experiments
