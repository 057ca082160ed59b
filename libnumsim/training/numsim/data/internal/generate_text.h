// Generated text with a known entropy: the default data of language models.
//
// A text is a sequence of documents. Each has a title that names its topic, its cast and a year,
// and paragraphs of sentences from a small grammar. From short to long range, a model can learn:
// the spelling of some 2100 words with Zipf frequencies; word order; which words go together; the
// agreement of determiner, noun and verb in number; the closing of questions and quotes; nouns that
// recur within a few sentences; and the topic words, names and year of the title. text_model.h
// defines the process.
//
// The entropy bound: let p(x) be the probability that the process generates a text that begins with
// x. For any predictor q of bytes, E[-ln q(x)] >= E[-ln p(x)], because the difference is a relative
// entropy. p(x) is known because a text has at most one derivation: each word is spelled
// differently from all others and from all names, a word is always followed by a non-letter, and
// the rules can be recognised from the words. So for a text of whole sentences, -ln p(x) is the sum
// of -ln of the probabilities of all choices made. No hidden state is left out, because topic, cast
// and year appear in the text. `nats` is this sum up to the end of the last whole sentence; the
// rest of the text would only add to it. A predictor that sees less than the whole preceding text,
// such as a model with a short context, does worse.
//
// The bound also holds for the given text, not only on average: E[q(x) / p(x)] <= 1, so for a
// predictor that was made without this text, -ln q(x) < nats - t has a probability of at most e^-t
// (Markov's inequality). Over a text of 100 KB, a loss 0.001 nats per byte below the bound has a
// probability of at most e^-100. A part of the text has its own sum: over n bytes, the mean
// deviates by about 1.2 / sqrt(n) nats per byte.
#pragma once

#include <cstdint>
#include <string>

#include "numsim/data/internal/text_model.h"

namespace numsim {

// A generated text and the information content of its whole sentences.
struct GeneratedText {
  std::string text;  // ASCII
  double nats = 0;   // -ln of the probability of all whole sentences in `text`
};

// Returns the first `bytes` bytes of text number `part` of the seed. `model` must be constructed
// from the same seed. A shorter text is a prefix of a longer one. Runs on the calling thread and
// takes less than 0.1 s for 2^20 bytes.
GeneratedText GenerateText(const TextModel& model, uint64_t seed, uint64_t part, size_t bytes);

}  // namespace numsim
