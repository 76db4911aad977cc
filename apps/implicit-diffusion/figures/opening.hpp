// The paragraph that opens a report: what was done, whether it worked, and how one can tell. Each kind of experiment
// writes its own, from the results of the run alone; these are the words that they share.
#pragma once

#include "experiment/run_directory.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace program {

// The first and the last finite value of a column of metrics.csv.
struct Ends {
  double first, last;
  bool moving;  // it had not levelled off by the end (still_moving)
};
// Nothing where the column is missing or has no finite value.
std::optional<Ends> ends_of(const std::vector<double>* column, bool in_nats = false);

// "rose from 0.1 to 0.2", "fell from 0.2 to 0.1" or "stayed at 0.1".
std::string change_text(double from, double to);
std::string change_text(const Ends& e);

// A share as a percentage. One that is not whole is never rounded to 100 %.
std::string percent(double share);

// How much of the way from the start to a known optimum a run has gone: 1 is all of it, below 0 is backwards.
double share_of_way(double start, double end, double optimum);
// "It worked", "It got part of the way", ...
std::string verdict_of(double share);
// The same of a divergence, in nats, that ought to be 0. With much of it left nothing has worked, however much there
// was.
std::string verdict_of_divergence(double first, double last);

// Sentences with blanks between them; empty ones are left out.
std::string paragraph(const std::vector<std::string>& sentences);

// "It failed: ...", "It was interrupted ...", or empty for a run that completed its steps.
std::string how_it_ended(const std::string& status, std::int64_t steps, std::int64_t wanted);

// The paragraph over runs that differ only in their seeds.
std::string repeats_opening(std::span<const RunTable* const> runs);

}  // namespace program
