// Generated text: the default data of language models, with a known entropy.
//
// A text is a sequence of documents, each with a title that names its topic, its cast and a year,
// and sentences of a small grammar in paragraphs. What a model can learn, from near to far:
// spelling of some 2100 words of Zipf frequencies, word order, which words go together, agreement
// of determiner, noun and verb in number, closing of questions and quotes, nouns that return within
// a few sentences, the topic's words, names and year of the title. text_model.h has the process.
//
// The bound. Let p(x) be the probability that the process generates a text that begins with x. For
// any predictor q of bytes, E[-ln q(x)] >= E[-ln p(x)], since the difference is a relative entropy.
// p(x) is known because a text has one derivation at most: words are spelled apart from all others
// and from names, each is followed by what is no letter, and rules show in the words. So -ln p(x)
// of a text of whole sentences is the sum of -ln of the probabilities of all choices made. Nothing
// hidden is left out: topic, cast and year are text themselves. `nats` is that sum up to the end of
// the last whole sentence; what is behind it would only add. A predictor that sees less than the
// whole text before a byte, such as a model with a short context, does worse.
//
// The bound holds for the text at hand, not just on average: E[q(x) / p(x)] <= 1, so for a
// predictor that was made without this text, -ln q(x) < nats - t has a probability of at most e^-t
// (Markov). Over a text of 100 KB, a loss of 0.001 nats a byte below the bound has one of e^-100. A
// part of the text has a sum of its own: over n bytes the mean deviates by about 1.2 / sqrt(n) nats
// a byte.
#pragma once

#include <cstdint>
#include <string>

#include "numsim/data/internal/text_model.h"

namespace numsim {

struct GeneratedText {
  std::string text;  // ASCII
  double nats = 0;   // of its whole sentences: -ln of their probability
};

// `bytes` bytes of text number `part` of that seed; the model is to be of the same seed. Fewer
// bytes are the beginning of more. Runs on the calling thread, less than 0.1 s for 2^20 bytes.
GeneratedText GenerateText(const TextModel& model, uint64_t seed, uint64_t part, size_t bytes);

}  // namespace numsim
