#include "numsim/data/internal/generate_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "numsim/base/parallel.h"

namespace numsim {
namespace {

TEST(ShapeScene, CaptionsSayWhatASceneShows) {
  EXPECT_EQ(Caption(SceneOf(0), false), "a small red circle");
  EXPECT_EQ(Caption(SceneOf(kShapeObjects - 1), true), "a large black ring");
  const ShapeScene scene{2, {{{0, 0, 0}, {1, 2, 1}}}, true};
  EXPECT_EQ(Caption(scene, false), "a small red circle above a large blue square");
  EXPECT_EQ(Caption(scene, true), "a large blue square below a small red circle");
  const ShapeScene beside{2, {{{0, 3, 2}, {1, 7, 4}}}, false};
  EXPECT_EQ(Caption(beside, false), "a small yellow triangle left of a large black cross");
  EXPECT_EQ(Caption(beside, true), "a large black cross right of a small yellow triangle");
}

TEST(ShapeScene, EverySceneHasCaptionsOfItsOwn) {
  std::set<std::string> captions;
  for (size_t i = 0; i < kShapeScenes; ++i) {
    const ShapeScene scene = SceneOf(i);
    captions.insert(Caption(scene, false));
    if (scene.objects == 2) {
      captions.insert(Caption(scene, true));
      EXPECT_NE(ToString(scene.object[0]), ToString(scene.object[1]));
    }
  }
  EXPECT_EQ(captions.size(), kShapeObjects + 2 * (kShapeScenes - kShapeObjects));
}

struct Box {
  size_t top = 1000, bottom = 0, left = 1000, right = 0, pixels = 0;
};

// The pixels whose colour is nearest to that of the name, by hue for colours and by grey for white
// and black. The names of the library's colours are the only thing shared with it.
bool IsOfColour(const std::string& colour, int r, int g, int b) {
  const int most = std::max({r, g, b}), least = std::min({r, g, b});
  const bool grey = most - least < 85;
  if (colour == "white") return grey && least > 200;
  if (colour == "black") return grey && most < 60;
  if (grey) return false;
  const double span = most - least;
  double hue = most == r ? (g - b) / span : most == g ? 2 + (b - r) / span : 4 + (r - g) / span;
  if (hue < 0) hue += 6;
  const std::map<std::string, double> hues = {{"red", 0},
                                              {"orange", 0.51},
                                              {"yellow", 0.9},
                                              {"green", 2.14},
                                              {"blue", 3.83},
                                              {"purple", 4.71}};
  std::string nearest;
  double distance = 10;
  for (const auto& [name, h] : hues) {
    const double d = std::min(std::abs(h - hue), 6 - std::abs(h - hue));
    if (d < distance) distance = d, nearest = name;
  }
  return nearest == colour;
}

Box BoxOf(const CaptionSet& set, size_t image, const std::string& colour) {
  Box box;
  for (size_t y = 0; y < set.height; ++y) {
    for (size_t x = 0; x < set.width; ++x) {
      const uint8_t* const p = set.pixels.data() + ((image * set.height + y) * set.width + x) * 3;
      if (!IsOfColour(colour, p[0], p[1], p[2])) continue;
      box.top = std::min(box.top, y);
      box.bottom = std::max(box.bottom, y);
      box.left = std::min(box.left, x);
      box.right = std::max(box.right, x);
      ++box.pixels;
    }
  }
  return box;
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Share of the box that the form fills: circle, square, ...
const std::map<std::string, std::pair<double, double>> kFill = {{"circle", {0.68, 0.85}},
                                                                {"square", {0.9, 1.0}},
                                                                {"triangle", {0.4, 0.62}},
                                                                {"diamond", {0.4, 0.62}},
                                                                {"cross", {0.42, 0.64}},
                                                                {"ring", {0.42, 0.68}}};

TEST(ShapeWorld, ImagesShowWhatCaptionsSay) {
  const CaptionSet set = ShapeWorld(1, 64, 0.1).Generate(false, 600);
  size_t pairs = 0;
  for (size_t i = 0; i < set.count; ++i) {
    const std::vector<std::string> words = Words(set.captions[i]);
    ASSERT_TRUE(words.size() == 4 || words.size() >= 9) << set.captions[i];
    const Box first = BoxOf(set, i, words[2]);
    const auto check_object = [&](const Box& box, size_t at) {
      ASSERT_GT(box.pixels, 20u) << set.captions[i];
      const double height = static_cast<double>(box.bottom - box.top + 1);
      const double width = static_cast<double>(box.right - box.left + 1);
      EXPECT_EQ(words[at] == "large", std::max(width, height) > 20) << set.captions[i];
      const double fill = static_cast<double>(box.pixels) / (width * height);
      const auto& [least, most] = kFill.at(words[at + 2]);
      EXPECT_GE(fill, least - 0.08) << set.captions[i];
      EXPECT_LE(fill, most + 0.08) << set.captions[i];
    };
    if (words.size() == 4) {
      check_object(first, 1);
      continue;
    }
    const size_t second_at = words.size() - 3;
    if (words[2] == words[second_at + 1]) continue;  // of one colour
    ++pairs;
    const Box second = BoxOf(set, i, words[second_at + 1]);
    check_object(first, 1);
    check_object(second, second_at);
    const std::string& relation = words[4];
    EXPECT_EQ(relation == "above", first.bottom < second.top) << set.captions[i];
    EXPECT_EQ(relation == "below", first.top > second.bottom) << set.captions[i];
    EXPECT_EQ(relation == "left", first.right < second.left) << set.captions[i];
    EXPECT_EQ(relation == "right", first.left > second.right) << set.captions[i];
  }
  EXPECT_GT(pairs, 400u);
}

TEST(ShapeWorld, ConceptsAreScenes) {
  const CaptionSet set = ShapeWorld(2, 16, 0.1).Generate(false, 3000);
  std::map<std::string, int32_t> concepts;
  std::set<std::string> captions;
  for (size_t i = 0; i < set.count; ++i) {
    const ShapeScene scene = SceneOf(static_cast<size_t>(set.concepts[i]));
    EXPECT_TRUE(set.captions[i] == Caption(scene, false) ||
                set.captions[i] == Caption(scene, true));
    captions.insert(set.captions[i]);
  }
  EXPECT_GT(captions.size(), 2000u);
}

TEST(ShapeWorld, TrainingAndValidationShareNoScene) {
  const ShapeWorld world(3, 16, 0.1);
  const CaptionSet train = world.Generate(false, 4000), valid = world.Generate(true, 1000);
  const std::set<int32_t> seen(train.concepts.begin(), train.concepts.end());
  std::set<std::string> words;
  for (const std::string& caption : train.captions) {
    for (const std::string& word : Words(caption)) words.insert(word);
  }
  EXPECT_EQ(words.size(),
            1u + 2 + 8 + 6 + 4 + 1);  // a, sizes, colours, forms, relations, of
  size_t singles = 0;
  for (const int32_t concept_number : valid.concepts) {
    EXPECT_EQ(seen.count(concept_number), 0u);
    singles += static_cast<size_t>(concept_number) < kShapeObjects;
  }
  EXPECT_NEAR(static_cast<double>(singles), 125, 50);
}

TEST(ShapeWorld, BytesDoNotDependOnThreadsOrCount) {
  const ShapeWorld world(4, 20, 0.2);
  const int threads = ThreadCount();
  SetThreadCount(1);
  const CaptionSet one = world.Generate(false, 100);
  SetThreadCount(3);
  const CaptionSet three = world.Generate(false, 130);
  SetThreadCount(threads);
  EXPECT_TRUE(std::equal(one.pixels.begin(), one.pixels.end(), three.pixels.begin()));
  EXPECT_TRUE(std::equal(one.captions.begin(), one.captions.end(), three.captions.begin()));
  EXPECT_NE(ShapeWorld(5, 20, 0.2).Generate(false, 100).pixels, one.pixels);
  EXPECT_NE(world.Generate(true, 100).pixels, one.pixels);
}

TEST(ShapeWorld, BytesStayWhatTheyAre) {
  const CaptionSet set = ShapeWorld(0, 32, 0.1).Generate(false, 50);
  uint64_t hash = 0xCBF29CE484222325u;
  for (const uint8_t byte : set.pixels) hash = (hash ^ byte) * 0x100000001B3u;
  EXPECT_EQ(hash, 14161262237799718202u);
}

}  // namespace
}  // namespace numsim
