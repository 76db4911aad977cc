// The processes of an MPI job (mpi.hpp). One file, though a long one: exchanges, failures and tasks wait in the same
// loop and share its requests and its mutex.
//
// Every wait is for requests that do not block, in a loop of our own: so it can look for messages about failures, give
// up after a time, and leave the processor to others. Few ranks exchange directly, each with each other, which is the
// quickest for short messages; many by MPI's own collective functions.
//
// No call of MPI is made by two threads at once: a mutex sees to that (MPI_THREAD_SERIALIZED).
#include "implicit_diffusion/mpi.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace implicit_diffusion {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr int data = 0;  // the tag of what is exchanged
// Those of messages about the job itself.
enum Watch { ping = 1, pong, failure, ask_task, give_task, result, no_more };
constexpr std::size_t few_ranks = 16;

class Job final : public MpiJob {
 public:
  explicit Job(const MpiOptions& options) : options_(options) {
    MPI_Comm_dup(MPI_COMM_WORLD, &exchange_);
    MPI_Comm_dup(MPI_COMM_WORLD, &watch_);
    int number = 0;
    MPI_Comm_rank(exchange_, &number);
    rank_ = static_cast<std::size_t>(number);
    MPI_Comm_size(exchange_, &number);
    ranks_ = static_cast<std::size_t>(number);
    owed_.assign(ranks_, 0);
  }

  std::size_t rank() const override { return rank_; }
  std::size_t ranks() const override { return ranks_; }

  void send(std::size_t to, std::span<const std::byte> bytes) override {
    begin(bytes.size());
    add_send(to, bytes);
    wait();
  }
  void receive(std::size_t from, std::span<std::byte> bytes) override {
    begin(bytes.size());
    add_receive(from, bytes);
    wait();
  }

  void broadcast(std::size_t from, std::span<std::byte> bytes) override {
    begin(bytes.size());
    if (ranks_ > few_ranks) {
      const std::lock_guard lock(mutex_);
      MPI_Ibcast(bytes.data(), size_of(bytes.size()), MPI_BYTE, static_cast<int>(from), exchange_, &add(none));
    } else if (rank_ == from) {
      for (std::size_t r = 0; r < ranks_; ++r)
        if (r != rank_) add_send(r, bytes);
    } else {
      add_receive(from, bytes);
    }
    wait();
  }

  void gather(std::span<const std::size_t> sizes, std::span<std::byte> all) override {
    begin(ranks_ > few_ranks ? all.size() : std::ranges::max(sizes));
    std::size_t at = 0, own = 0;
    if (ranks_ > few_ranks) {
      counts_.clear();
      places_.clear();
      for (const std::size_t size : sizes) {
        counts_.push_back(size_of(size));
        places_.push_back(size_of(at));
        at += size;
      }
      const std::lock_guard lock(mutex_);
      MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), counts_.data(), places_.data(), MPI_BYTE,
                      exchange_, &add(none));
    } else {
      for (std::size_t r = 0; r < ranks_; at += sizes[r++]) {
        if (r == rank_) own = at;
        if (r != rank_ && sizes[r] > 0) add_receive(r, all.subspan(at, sizes[r]));
      }
      for (std::size_t r = 0; r < ranks_; ++r)
        if (r != rank_ && sizes[rank_] > 0) add_send(r, all.subspan(own, sizes[rank_]));
    }
    wait();
  }

  [[noreturn]] void fail(const std::string& line, int code) override {
    if (rank_ != 0) {
      // The first one says it, once for all who fail, when it next waits. If it does not, this one does.
      std::string message(sizeof code, '\0');
      std::memcpy(message.data(), &code, sizeof code);
      message += line;
      MPI_Request request = MPI_REQUEST_NULL;
      {
        const std::lock_guard lock(mutex_);
        MPI_Isend(message.data(), size_of(message.size()), MPI_BYTE, 0, failure, watch_, &request);
      }
      const double patience = 5 + 0.25 * static_cast<double>(rank_ % 16);
      for (const auto begin = Clock::now(); seconds_since(begin) < patience;) {
        int done = 0;
        {
          const std::lock_guard lock(mutex_);
          MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        look();
        ::usleep(1000);
      }
    }
    say_and_abort(line, code);
  }

  void finish() override {
    // The first one may still have much to do alone, so there is no limit.
    limited_ = false;
    std::vector<char> all(ranks_);
    const std::vector<std::size_t> ones(ranks_, 1);
    gather(ones, std::as_writable_bytes(std::span(all)));
    const std::lock_guard lock(mutex_);
    MPI_Comm_free(&exchange_);
    MPI_Comm_free(&watch_);
    MPI_Finalize();
  }

  void begin_tasks(std::size_t count) override {
    count_ = count;
    next_ = 0;
    results_.assign(rank_ == 0 ? count : 0, {});
    if (rank_ == 0) {
      left_ = ranks_ - 1;
      server_ = std::thread([this] { serve(); });
    } else {
      // A task may take longer than anybody waits for an answer.
      answering_ = std::jthread([this](const std::stop_token& stop) {
        for (; !stop.stop_requested(); ::usleep(5000)) look();
      });
    }
  }

  std::size_t next_task() override {
    if (rank_ == 0) return std::min(next_++, count_);
    const std::lock_guard one(asking_);
    std::uint64_t task = 0;
    exchange_with_first(ask_task, {}, &task);
    return static_cast<std::size_t>(task);
  }

  void stop_tasks() override {
    if (rank_ == 0) {
      next_ = count_;
      return;
    }
    const std::lock_guard one(asking_);
    exchange_with_first(no_more, {}, nullptr);
  }

  void put_result(std::size_t task, const std::string& bytes) override {
    if (rank_ == 0) {
      const std::lock_guard lock(results_mutex_);
      results_[task] = bytes;
      return;
    }
    const std::lock_guard one(asking_);
    std::string message(sizeof(std::uint64_t), '\0');
    const std::uint64_t number = task;
    std::memcpy(message.data(), &number, sizeof number);
    message += bytes;
    exchange_with_first(result, message, nullptr);
  }

  std::vector<std::string> end_tasks() override {
    if (rank_ == 0) {
      server_.join();
    } else {
      const std::lock_guard one(asking_);
      const std::uint64_t none_left = ~std::uint64_t{0};
      exchange_with_first(result, std::string(reinterpret_cast<const char*>(&none_left), sizeof none_left), nullptr);
    }
    answering_ = {};  // from here on, this one answers while it waits
    others_work_ = true;
    std::vector<char> all(ranks_);
    gather(std::vector<std::size_t>(ranks_, 1), std::as_writable_bytes(std::span(all)));
    others_work_ = false;
    return std::move(results_);
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  static int size_of(std::size_t bytes) { return static_cast<int>(bytes); }
  void require_size(std::size_t bytes) {
    if (bytes > INT_MAX) fail("MPI: a message of more than 2 GiB", 74);
  }

  // The requests of an exchange of at most so many bytes each, and for whom each waits.
  void begin(std::size_t bytes) {
    require_size(bytes);
    requests_.clear();
    peers_.clear();
  }
  MPI_Request& add(std::size_t peer) {
    peers_.push_back(peer);
    return requests_.emplace_back(MPI_REQUEST_NULL);
  }
  void add_send(std::size_t to, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    MPI_Isend(bytes.data(), size_of(bytes.size()), MPI_BYTE, static_cast<int>(to), data, exchange_, &add(to));
  }
  void add_receive(std::size_t from, std::span<std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    MPI_Irecv(bytes.data(), size_of(bytes.size()), MPI_BYTE, static_cast<int>(from), data, exchange_, &add(from));
  }

  bool done() {
    const std::lock_guard lock(mutex_);
    int flag = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag, MPI_STATUSES_IGNORE);
    return flag != 0;
  }

  // Spins at first, since most waits are short; later it lets others run.
  void wait() {
    if (requests_.empty()) return;
    for (int i = 0; i < 200; ++i)
      if (done()) return;
    const auto since = Clock::now();
    auto looked = since, asked = since;
    while (!done()) {
      const auto now = Clock::now();
      const double waited = std::chrono::duration<double>(now - since).count();
      if (waited > 2e-5) ::sched_yield();
      if (waited > 0.1) ::usleep(200);
      if (now - looked < std::chrono::milliseconds(2)) continue;
      looked = now;
      look();
      if (!limited_ || waited < options_.timeout || now - asked < std::chrono::seconds(1)) continue;
      find_silent(waited);
      asked = Clock::now();
    }
  }

  // Messages about the job itself.
  void look() {
    for (;;) {
      int there = 0;
      MPI_Status status;
      const std::lock_guard lock(mutex_);
      for (const int tag : {int{ping}, int{failure}}) {
        if (tag == failure && rank_ != 0) continue;
        MPI_Iprobe(MPI_ANY_SOURCE, tag, watch_, &there, &status);
        if (there) break;
      }
      if (!there) return;
      int size = 0;
      MPI_Get_count(&status, MPI_BYTE, &size);
      std::string message(static_cast<std::size_t>(size), '\0');
      MPI_Recv(message.data(), size, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, watch_, MPI_STATUS_IGNORE);
      if (status.MPI_TAG == ping) {
        MPI_Request request;
        MPI_Isend(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, pong, watch_, &request);
        MPI_Request_free(&request);
      } else {
        int code = 0;
        std::memcpy(&code, message.data(), sizeof code);
        say_and_abort(message.substr(sizeof code), code);
      }
    }
  }

  // Those that have not done their part and do not answer either: they are stopped, or busy with something else. One
  // that answers waits itself, and knows better for whom.
  void find_silent(double waited) {
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      int finished = 0;  // MPI_Testall leaves requests as they are until all have finished
      {
        const std::lock_guard lock(mutex_);
        MPI_Request_get_status(requests_[i], &finished, MPI_STATUS_IGNORE);
      }
      for (std::size_t r = 0; r < ranks_ && !finished; ++r)
        if (r != rank_ && (peers_[i] == none || peers_[i] == r) && std::ranges::find(asked, r) == asked.end())
          asked.push_back(r);
    }
    const std::vector<std::size_t> silent = silent_of(asked, [this] { return done(); });
    if (!silent.empty()) give_up(waited, silent, "which does not answer");
    // Time enough for one that knows better to say so.
    if (waited > 2 * options_.timeout + 20 && !others_work_ && !done())
      give_up(waited, asked, "which answers: all wait for each other");
  }

  // Those of the ranks asked that do not answer; none where done(), which is called again and again, says that there is
  // nothing to wait for any more. Answers come in the order of the questions, so a late one to an earlier question is
  // not taken for one to this.
  //
  // Of several who wait for the same one, one should speak, and launchers take a second to end all. So each waits
  // longer than the rank before, and answers meanwhile.
  template <class Done>
  std::vector<std::size_t> silent_of(std::vector<std::size_t> asked, const Done& done) {
    for (const std::size_t r : asked) {
      const std::lock_guard lock(mutex_);
      MPI_Request request;
      MPI_Isend(nullptr, 0, MPI_BYTE, static_cast<int>(r), ping, watch_, &request);
      MPI_Request_free(&request);
      ++owed_[r];
    }
    const double patience = 1 + 1.5 * static_cast<double>(std::min<std::size_t>(rank_, 8));
    for (const auto begin = Clock::now(); !asked.empty() && seconds_since(begin) < patience; ::usleep(1000)) {
      look();
      take_answers();
      std::erase_if(asked, [this](std::size_t r) { return owed_[r] == 0; });
      if (done()) return {};
    }
    return asked;
  }

  void take_answers() {
    const std::lock_guard lock(mutex_);
    for (;;) {
      int there = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, pong, watch_, &there, &status);
      if (!there) return;
      MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, pong, watch_, MPI_STATUS_IGNORE);
      --owed_[static_cast<std::size_t>(status.MPI_SOURCE)];
    }
  }

  // Not by way of the first one, which may be the one that does not answer.
  [[noreturn]] void give_up(double waited, const std::vector<std::size_t>& ranks, const char* why) {
    std::string names;
    for (const std::size_t r : ranks) names += (names.empty() ? "" : ", ") + std::to_string(r);
    char line[512];
    std::snprintf(line, sizeof line, "MPI: rank %zu waited %.0f s for rank %s, %s", rank_, waited, names.c_str(), why);
    say_and_abort(line, 74);
  }

  [[noreturn]] void say_and_abort(const std::string& line, int code) {
    if (options_.before_abort) options_.before_abort();
    std::fprintf(stderr, "implicit-diffusion: %s\n", line.c_str());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

  // One question at a time to the thread of the first process that hands out tasks, which answers each.
  void exchange_with_first(int tag, const std::string& message, std::uint64_t* answer) {
    require_size(message.size());
    std::uint64_t received = 0;
    MPI_Request requests[2];
    {
      const std::lock_guard lock(mutex_);
      MPI_Isend(message.data(), size_of(message.size()), MPI_BYTE, 0, tag, watch_, &requests[0]);
      MPI_Irecv(&received, sizeof received, MPI_BYTE, 0, give_task, watch_, &requests[1]);
    }
    const auto is_answered = [&] {
      const std::lock_guard lock(mutex_);
      int flag = 0;
      MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
      return flag != 0;
    };
    const auto since = Clock::now();
    for (auto asked = since; !is_answered(); ::usleep(500)) {
      look();
      if (seconds_since(since) < options_.timeout || seconds_since(asked) < 1) continue;
      if (!silent_of({0}, is_answered).empty()) give_up(seconds_since(since), {0}, "which does not answer");
      asked = Clock::now();
    }
    if (answer) *answer = received;
  }

  void serve() {
    std::vector<std::size_t> others;
    for (std::size_t r = 1; r < ranks_; ++r) others.push_back(r);
    for (auto asked = Clock::now(); left_ > 0;) {
      const bool idle = !serve_one();
      look();
      if (idle) ::usleep(1000);
      const double waited = seconds_since(asked);
      if (waited < std::max(1.0, options_.timeout)) continue;
      const auto silent = silent_of(others, [this] {
        while (serve_one()) continue;
        return left_ == 0;
      });
      if (!silent.empty()) give_up(waited, silent, "which does not answer");
      asked = Clock::now();
    }
  }

  // Takes one message of each kind; false where there was none.
  bool serve_one() {
    bool found = false;
    for (const int tag : {int{ask_task}, int{result}, int{no_more}}) {
      int there = 0;
      MPI_Status status;
      const std::lock_guard lock(mutex_);
      MPI_Iprobe(MPI_ANY_SOURCE, tag, watch_, &there, &status);
      if (!there) continue;
      found = true;
      int size = 0;
      MPI_Get_count(&status, MPI_BYTE, &size);
      std::string message(static_cast<std::size_t>(size), '\0');
      MPI_Recv(message.data(), size, MPI_BYTE, status.MPI_SOURCE, tag, watch_, MPI_STATUS_IGNORE);
      std::uint64_t answer = 0;
      if (tag == ask_task) {
        answer = std::min<std::uint64_t>(next_++, count_);
      } else if (tag == no_more) {
        next_ = count_;
      } else {
        std::uint64_t task = 0;
        std::memcpy(&task, message.data(), sizeof task);
        if (task == ~std::uint64_t{0}) {
          --left_;
        } else {
          const std::lock_guard results(results_mutex_);
          results_[task] = message.substr(sizeof task);
        }
      }
      MPI_Send(&answer, sizeof answer, MPI_BYTE, status.MPI_SOURCE, give_task, watch_);  // short: it does not wait
    }
    return found;
  }

  MpiOptions options_;
  MPI_Comm exchange_ = MPI_COMM_NULL, watch_ = MPI_COMM_NULL;
  std::size_t rank_ = 0, ranks_ = 1;
  std::mutex mutex_;               // of calls of MPI
  bool limited_ = true;            // it waits no longer than the timeout for one that does not answer,
  bool others_work_ = false;       // and any time for those that do
  std::vector<std::size_t> owed_;  // answers to pings that have not come yet, of each rank
  std::vector<MPI_Request> requests_;
  std::vector<std::size_t> peers_;
  std::vector<int> counts_, places_;

  // Tasks.
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::size_t left_ = 0;  // ranks that have not ended theirs
  std::thread server_;
  std::jthread answering_;  // to pings, of the other ranks
  std::mutex asking_, results_mutex_;
  std::vector<std::string> results_;
};

}  // namespace
}  // namespace implicit_diffusion

extern "C" [[gnu::visibility("default")]] implicit_diffusion::MpiJob* implicit_diffusion_start_mpi(
    const implicit_diffusion::MpiOptions& options) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    std::fputs("implicit-diffusion: MPI: it lets no second thread call it\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return new implicit_diffusion::Job(options);
}

extern "C" [[gnu::visibility("default")]] const char* implicit_diffusion_describe_mpi() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  if (char* end = std::strpbrk(text, ",\n")) *end = '\0';
  std::replace(text, text + std::strlen(text), '\t', ' ');  // MPICH has one
  return text;
}
