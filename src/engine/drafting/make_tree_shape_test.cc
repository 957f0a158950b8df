// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/make_tree_shape.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

std::string message_of(const std::string& spec) {
  try {
    make_tree_shape(spec);
  } catch (const UsageError& error) {
    return std::string("usage: ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(MakeTreeShape, EveryKind) {
  struct Case {
    const char* spec;
    int n_nodes;
    int depth;
    bool is_chain;
    Siblings siblings;
  };
  constexpr Siblings kWithout = Siblings::without_replacement;
  for (const Case& one :
       std::vector<Case>{{"", 5, 5, true, kWithout},
                         {"chain", 5, 5, true, kWithout},
                         {"chain:length=8", 8, 8, true, kWithout},
                         {"chain:length=255", 255, 255, true, kWithout},
                         {"widths:4,2,2", 4 + 8 + 16, 3, false, kWithout},
                         {"widths:1,1", 2, 2, true, kWithout},
                         {"widths:3,siblings=with", 3, 1, false, Siblings::with_replacement},
                         {"widths:255", 255, 1, false, kWithout},
                         {"static:eagle1", 25, 5, false, kWithout},
                         {"static:medusa,siblings=top", 63, 4, false, Siblings::top_ranks},
                         {"dynamic", 60, 7, false, Siblings::top_ranks},
                         {"dynamic:total=9,depth=3,topk=2", 9, 3, false, Siblings::top_ranks},
                         {"best", 60, 16, false, Siblings::top_ranks},
                         {"best:nodes=255,depth=3", 255, 3, false, Siblings::top_ranks},
                         {"best:nodes=1", 1, 16, true, Siblings::top_ranks}}) {
    const auto shape = make_tree_shape(one.spec);
    EXPECT_EQ(shape->n_nodes(), one.n_nodes) << one.spec;
    EXPECT_EQ(shape->depth(), one.depth) << one.spec;
    EXPECT_EQ(shape->is_chain(), one.is_chain) << one.spec;
    EXPECT_EQ(shape->siblings(), one.siblings) << one.spec;
  }
}

TEST(MakeTreeShape, SaysWhatIsWrong) {
  struct Case {
    const char* spec;
    const char* named;
  };
  for (const Case& one : std::vector<Case>{{"bush", "one of chain, widths, static, dynamic"},
                                           {"chain:length=256", "from 1 to 255, got 256"},
                                           {"chain:8", "key=value after the colon"},
                                           {"chain:width=2", "keys among length"},
                                           {"widths", "expected widths:W1,W2,..., got no widths"},
                                           {"widths:", "got nothing"},
                                           {"widths:4,0", "from 1 to 255, got 0"},
                                           {"widths:2,1.5", "a whole number, got 1.5"},
                                           {"widths:16,16", "at most 255 nodes"},
                                           {"widths:2,2,2,2,2,2,2,2", "at most 255 nodes"},
                                           {"widths:2,siblings=some", "without, with, top"},
                                           {"static", "static:eagle1"},
                                           {"static:oak", "got oak"},
                                           {"static:eagle1,medusa", "got medusa"},
                                           {"static:file=", "static:file=FILE"},
                                           {"static:eagle1,file=x", "static:file=FILE"},
                                           {"dynamic:60", "key=value after the colon"},
                                           {"dynamic:siblings=with", "total, depth, topk"},
                                           {"dynamic:topk=100", "below 255, got 600"},
                                           {"best:60", "key=value after the colon"},
                                           {"best:total=60", "keys among nodes, depth"},
                                           {"best:nodes=256", "from 1 to 255, got 256"}}) {
    const std::string message = message_of(one.spec);
    EXPECT_EQ(message.find("usage: [read tree] "), 0U) << message;
    EXPECT_NE(message.find(one.named), std::string::npos) << message;
  }
}

class RankTreeFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto path = folder_.path() / "tree.json";
    std::ofstream(path) << text;
    return path.string();
  }
  test::TemporaryDirectory folder_;
};

TEST_F(RankTreeFile, IsReadInAnyOrder) {
  EXPECT_EQ(read_rank_tree(write("[[1, 0], [0], [0, 0, 0], [1], [0, 1], [0, 0]]")),
            (std::vector<int>{2, 2, 1, 1, 0, 0, 0}));
  const auto shape = make_tree_shape("static:file=" + write("[[0],[1],[0,0]]") + ",siblings=top");
  EXPECT_EQ(shape->n_nodes(), 3);
  EXPECT_EQ(shape->depth(), 2);
  EXPECT_EQ(shape->siblings(), Siblings::top_ranks);
}

// The published trees, as their papers' code lists them.
TEST_F(RankTreeFile, HoldsThePublishedTrees) {
  const auto file_of = [this](const std::vector<std::string>& paths) {
    std::string text;
    for (const std::string& path : paths) {
      text += text.empty() ? "[[" : ",[";
      for (std::size_t rank = 0; rank < path.size(); ++rank) {
        if (rank > 0) text += ',';
        text += path[rank];
      }
      text += ']';
    }
    return write(text + "]");
  };
  const auto without_leaves = [](std::vector<int> tree) {
    while (!tree.empty() && tree.back() == 0) tree.pop_back();
    return tree;
  };
  const std::vector<int> eagle1 = without_leaves(
      read_rank_tree(file_of({"0",   "1",   "2",    "3",    "00",   "01",    "02",   "10",  "11",
                              "20",  "21",  "30",   "000",  "001",  "002",   "010",  "011", "020",
                              "021", "100", "0000", "0001", "0002", "00000", "00001"})));
  EXPECT_EQ(eagle1, std::vector<int>(eagle1_tree().begin(), eagle1_tree().end()));
  const std::vector<int> medusa = without_leaves(read_rank_tree(file_of(
      {"0",   "00",  "1",   "01",  "2",   "000", "10",  "02",  "3",    "03",  "4",    "04",  "20",
       "05",  "001", "5",   "06",  "6",   "07",  "010", "11",  "7",    "08",  "002",  "30",  "09",
       "8",   "9",   "100", "020", "12",  "003", "40",  "21",  "004",  "005", "0000", "011", "006",
       "030", "50",  "13",  "007", "008", "009", "60",  "040", "14",   "70",  "012",  "200", "31",
       "22",  "80",  "050", "15",  "101", "021", "90",  "060", "0001", "16",  "070"})));
  EXPECT_EQ(medusa, std::vector<int>(medusa_tree().begin(), medusa_tree().end()));
}

TEST_F(RankTreeFile, SaysWhatIsWrong) {
  struct Case {
    const char* text;
    const char* named;
  };
  std::string many = "[[0]";
  for (int rank = 1; rank < 300; ++rank) many += ",[" + std::to_string(rank % 255) + "]";
  many += "]";
  for (const Case& one : std::vector<Case>{{"", "JSON text"},
                                           {"[[0],", "JSON text"},
                                           {"{}", "a list of nodes, got an object"},
                                           {"7", "a list of nodes, got 7"},
                                           {"[]", "at least one node, got none"},
                                           {"[0]", "a list of ranks for every node, got 0"},
                                           {"[[]]", "ranks in every node, got an empty one"},
                                           {"[[[0]]]", "ranks from 0 to 254, got an array"},
                                           {"[[0.5]]", "ranks from 0 to 254, got 0.5"},
                                           {"[[-1]]", "got -1"},
                                           {"[[255]]", "got 255"},
                                           {"[[99999999999999999999]]", "got"},
                                           {"[[0],[0]]", "each node once, got [0] twice"},
                                           {"[[0, 0]]", "[0] beside [0, 0], got none"},
                                           {"[[1]]", "[0] beside [1], got none"},
                                           {"[[0],[0,1]]", "[0, 0] beside [0, 1], got none"},
                                           {"[[0]] x", "JSON text"}}) {
    const std::string file = write(one.text);
    const std::string message = message_of("static:file=" + file);
    EXPECT_EQ(message.find("[read tree] " + file), 0U) << message;
    EXPECT_NE(message.find(one.named), std::string::npos) << message;
  }
  EXPECT_NE(message_of("static:file=" + write(many)).find("expected"), std::string::npos);
  EXPECT_NE(message_of("static:file=/nowhere/tree.json").find("/nowhere/tree.json"),
            std::string::npos);
}

}  // namespace
}  // namespace outrider
