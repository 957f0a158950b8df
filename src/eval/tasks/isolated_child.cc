// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/isolated_child.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "outrider/error.h"

namespace outrider::eval {
namespace {

constexpr const char* kOperation = "run program";
constexpr int kReportDescriptor = 3;
constexpr unsigned kNobody = 65534;
// Enough for the last lines of a traceback.
constexpr std::size_t kErrors_bytes = 8192;
constexpr std::size_t kReport_bytes = 64;

// As in the kernel (mount_setattr(2)); older C libraries do not declare it.
struct MountAttributes {
  std::uint64_t set;
  std::uint64_t clear;
  std::uint64_t propagation;
  std::uint64_t user_namespace;
};
constexpr std::uint64_t kReadOnly = 1;
constexpr int kRecursive = 0x8000;
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  int get() const { return number_; }
  void reset(int number = -1) {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

 private:
  int number_ = -1;
};

// Everything that the child needs, prepared before the clone: in the child of a program with
// threads, only async-signal-safe functions may be called.
struct Preparation {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const char* directory;
  Isolation isolation;
  std::array<std::pair<int, rlimit>, 6> limits;
  bool becomes_nobody;
  int null;
  int errors;
  int report;
};

bool make_files_read_only(const char* directory) {
  MountAttributes read_only = {kReadOnly, 0, 0, 0};
  MountAttributes writable = {0, kReadOnly, 0, 0};
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount(directory, directory, nullptr, MS_BIND, nullptr) == 0 &&
         ::syscall(SYS_mount_setattr, AT_FDCWD, "/", kRecursive, &read_only, sizeof(read_only)) ==
             0 &&
         ::syscall(SYS_mount_setattr, AT_FDCWD, directory, 0, &writable, sizeof(writable)) == 0;
}

void keep_only_standard_descriptors(const Preparation& preparation) {
  // Moves descriptors away from the target numbers, then onto them.
  const int errors = ::fcntl(preparation.errors, F_DUPFD, 16);
  const int report = ::fcntl(preparation.report, F_DUPFD, 16);
  const int null = ::fcntl(preparation.null, F_DUPFD, 16);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::dup2(report, kReportDescriptor);
  if (::syscall(SYS_close_range, kReportDescriptor + 1, ~0U, 0) != 0) {
    for (int other = kReportDescriptor + 1; other < 1024; ++other) ::close(other);
  }
}

// Runs in the child. Returns false if a requested restriction is not available.
bool confine(const Preparation& preparation) {
  ::setpgid(0, 0);
  for (const int number : {SIGPIPE, SIGXFSZ, SIGINT}) std::signal(number, SIG_DFL);
  if (preparation.isolation.files && !make_files_read_only(preparation.directory)) return false;
  if (::chdir(preparation.directory) != 0) return false;
  for (const auto& limit : preparation.limits) {
    if (::setrlimit(static_cast<__rlimit_resource_t>(limit.first), &limit.second) != 0) {
      return false;
    }
  }
  if (preparation.becomes_nobody &&
      (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
       ::setresuid(kNobody, kNobody, kNobody) != 0)) {
    return false;
  }
  // Comes last, since a change of user would reset them.
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

constexpr int kNotConfined = 125;
constexpr int kNotStarted = 127;

[[noreturn]] void be_the_child(const Preparation& preparation) {
  keep_only_standard_descriptors(preparation);
  if (!confine(preparation)) ::_exit(kNotConfined);
  if (preparation.arguments.empty()) ::_exit(0);
  ::execve(preparation.arguments.front(), preparation.arguments.data(),
           preparation.environment.data());
  constexpr std::string_view kMessage = "the interpreter does not start\n";
  if (::write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0) ::_exit(kNotStarted);
  ::_exit(kNotStarted);
}

rlimit limit_of(std::int64_t value) {
  return {.rlim_cur = static_cast<rlim_t>(value), .rlim_max = static_cast<rlim_t>(value)};
}

void make_pipe(Descriptor& reading, Descriptor& writing) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(kOperation, "pipe", std::strerror(errno));
  reading.reset(ends[0]);
  writing.reset(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

// Appends what can be read without waiting, keeping the last `n_kept` bytes.
void drain(int descriptor, std::string& out, std::size_t n_kept) {
  char buffer[4096];
  ssize_t n = 0;
  while ((n = ::read(descriptor, buffer, sizeof(buffer))) > 0) {
    out.append(buffer, static_cast<std::size_t>(n));
    if (out.size() > n_kept) out.erase(0, out.size() - n_kept);
  }
}

bool has_ended(pid_t child) {
  siginfo_t state = {};
  return ::waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         state.si_pid == child;
}

pid_t start(const Preparation& preparation) {
  unsigned long flags = SIGCHLD;
  const Isolation& isolation = preparation.isolation;
  if (isolation.network) flags |= CLONE_NEWNET;
  if (isolation.processes) flags |= CLONE_NEWPID | CLONE_NEWIPC;
  if (isolation.files) flags |= CLONE_NEWNS;
  if (flags != SIGCHLD && ::geteuid() != 0) flags |= CLONE_NEWUSER;
  // fork(2), but with new namespaces.
  const long child = ::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) be_the_child(preparation);
  return static_cast<pid_t>(child);
}

}  // namespace

ChildRun run_isolated(const std::vector<std::string>& arguments,
                      const std::filesystem::path& directory, const Isolation& isolation,
                      const PythonLimits& limits) {
  Descriptor errors_reading;
  Descriptor errors_writing;
  Descriptor report_reading;
  Descriptor report_writing;
  make_pipe(errors_reading, errors_writing);
  make_pipe(report_reading, report_writing);
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.get() < 0) throw Error(kOperation, "/dev/null", std::strerror(errno));

  std::vector<std::string> words = arguments;
  std::vector<std::string> settings = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                       "HOME=" + directory.string(),
                                       "TMPDIR=" + directory.string(),
                                       "LANG=C.UTF-8",
                                       "PYTHONHASHSEED=0",
                                       "OMP_NUM_THREADS=1",
                                       "OPENBLAS_NUM_THREADS=1"};
  Preparation preparation{
      .arguments = {},
      .environment = {},
      .directory = directory.c_str(),
      .isolation = isolation,
      .limits = {{{RLIMIT_CPU, limit_of(limits.wall_seconds)},
                  {RLIMIT_AS, limit_of(limits.memory_bytes)},
                  {RLIMIT_NPROC, limit_of(limits.n_processes)},
                  {RLIMIT_FSIZE, limit_of(limits.file_bytes)},
                  {RLIMIT_CORE, limit_of(0)},
                  {RLIMIT_NOFILE, limit_of(256)}}},
      // A root whose namespace lacks that user keeps its own.
      .becomes_nobody = ::geteuid() == 0 && ::chown(directory.c_str(), kNobody, kNobody) == 0,
      .null = null.get(),
      .errors = errors_writing.get(),
      .report = report_writing.get()};
  for (std::string& word : words) preparation.arguments.push_back(word.data());
  if (!words.empty()) preparation.arguments.push_back(nullptr);
  for (std::string& setting : settings) preparation.environment.push_back(setting.data());
  preparation.environment.push_back(nullptr);

  const pid_t child = start(preparation);
  if (child < 0) throw Error(kOperation, "child", std::strerror(errno));
  ::setpgid(child, child);  // in both processes, whichever runs first; needed before a kill
  errors_writing.reset();
  report_writing.reset();

  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(limits.wall_seconds);
  ChildRun run;
  // Without pidfd_open (before Linux 5.3) the child's end is found by polling.
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  constexpr int kBetweenLooks = 20;  // milliseconds
  while (!has_ended(child)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      run.timed_out = true;
      break;
    }
    // A closed pipe makes poll return at once: only open ones are polled, and the child's end wakes
    // it in any case.
    pollfd waiting[] = {{.fd = handle.get(), .events = POLLIN, .revents = 0},
                        {.fd = errors_reading.get(), .events = POLLIN, .revents = 0},
                        {.fd = report_reading.get(), .events = POLLIN, .revents = 0}};
    const long longest = handle.get() < 0 ? kBetweenLooks : 1000;
    ::poll(waiting, 3, static_cast<int>(std::min<long>(left + 1, longest)));
    drain(errors_reading.get(), run.errors, kErrors_bytes);
    drain(report_reading.get(), run.report, kReport_bytes);
    if ((waiting[1].revents & POLLHUP) != 0 && (waiting[2].revents & POLLHUP) != 0) {
      pollfd end = {.fd = handle.get(), .events = POLLIN, .revents = 0};
      ::poll(&end, 1, static_cast<int>(std::min<long>(left + 1, longest)));
    }
  }
  // The child has not been reaped yet, so its group's number is still its own.
  ::kill(-child, SIGKILL);
  ::kill(child, SIGKILL);
  while (::waitpid(child, &run.status, 0) < 0 && errno == EINTR) {
  }
  drain(errors_reading.get(), run.errors, kErrors_bytes);
  drain(report_reading.get(), run.report, kReport_bytes);
  return run;
}

Isolation probe_isolation() {
  const std::filesystem::path directory = std::filesystem::temp_directory_path();
  const Isolation candidates[] = {{.network = true, .processes = true, .files = true},
                                  {.network = true, .processes = true, .files = false},
                                  {.network = true, .processes = false, .files = false}};
  for (const Isolation& isolation : candidates) {
    std::string scratch = (directory / "outrider-probe-XXXXXX").string();
    if (::mkdtemp(scratch.data()) == nullptr) {
      throw Error(kOperation, directory.string(), std::strerror(errno));
    }
    bool works = false;
    try {
      const ChildRun run = run_isolated({}, scratch, isolation, {});
      works = !run.timed_out && WIFEXITED(run.status) && WEXITSTATUS(run.status) == 0;
    } catch (const Error&) {
      works = false;  // namespaces are not available here
    }
    std::error_code ignored;
    std::filesystem::remove_all(scratch, ignored);
    if (works) return isolation;
  }
  return {};
}

}  // namespace outrider::eval
