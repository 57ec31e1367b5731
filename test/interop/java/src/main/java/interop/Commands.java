package interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/**
 * {"kind":"fair","name":"n","action":"acquire","wait":1000,"lease":500}: what to do with which primitive. Times are in
 * milliseconds. Without "wait" an acquisition waits for ever; without "lease" the watchdog renews it.
 */
final class Commands {
  private final List<RedissonClient> clients;
  private final RedissonClient client;

  Commands(List<RedissonClient> clients) {
    this.clients = clients;
    this.client = clients.get(0);
  }

  Object run(JsonNode command) throws Exception {
    if (command.path("action").asText().equals("die")) Runtime.getRuntime().halt(137);
    String name = command.path("name").asText();
    return switch (command.path("kind").asText()) {
      case "semaphore" -> semaphore(client.getSemaphore(name), command);
      case "permit" -> permit(client.getPermitExpirableSemaphore(name), command);
      case "latch" -> latch(client.getCountDownLatch(name), command);
      default -> lock(lockOf(command.path("kind").asText(), name, command), command);
    };
  }

  private RLock lockOf(String kind, String name, JsonNode command) {
    return switch (kind) {
      case "lock" -> client.getLock(name);
      case "fair" -> client.getFairLock(name);
      case "spin" -> client.getSpinLock(name);
      case "nonReentrant" -> client.getNonReentrantLock(name);
      case "nonReentrantFair" -> client.getNonReentrantFairLock(name);
      case "fenced" -> client.getFencedLock(name);
      case "read" -> client.getReadWriteLock(name).readLock();
      case "write" -> client.getReadWriteLock(name).writeLock();
      case "multi" -> client.getMultiLock(members(command));
      case "red" -> client.getRedLock(members(command));
      default -> throw new IllegalArgumentException("kind: " + kind);
    };
  }

  /** Where there are several servers, the first name is a lock of the first, and so on. */
  private RLock[] members(JsonNode command) {
    List<RLock> members = new ArrayList<>();
    for (JsonNode name : command.path("names")) {
      members.add(clients.get(members.size() % clients.size()).getLock(name.asText()));
    }
    return members.toArray(new RLock[0]);
  }

  private static Object lock(RLock lock, JsonNode command) throws Exception {
    long lease = command.path("lease").asLong(-1);
    switch (command.path("action").asText()) {
      case "acquire":
        if (command.has("wait")) return lock.tryLock(command.get("wait").asLong(), lease, TimeUnit.MILLISECONDS);
        lock.lock(lease, TimeUnit.MILLISECONDS);
        return true;
      case "tryAcquire":
        return lock.tryLock();
      case "acquireToken":
        return ((RFencedLock) lock).lockAndGetToken();
      case "token":
        return ((RFencedLock) lock).getToken();
      case "release":
        lock.unlock();
        return null;
      case "forceRelease":
        return lock.forceUnlock();
      case "isLocked":
        return lock.isLocked();
      case "holdCount":
        return lock.getHoldCount();
      case "remaining":
        return lock.remainTimeToLive();
      case "count":
        return count(command, () -> {
          lock.lock();
          return lock;
        }, RLock::unlock);
      default:
        throw unknown(command);
    }
  }

  private static Object semaphore(RSemaphore semaphore, JsonNode command) throws Exception {
    int permits = command.path("permits").asInt(1);
    switch (command.path("action").asText()) {
      case "setPermits":
        return semaphore.trySetPermits(permits);
      case "acquire":
        if (command.has("wait")) return semaphore.tryAcquire(permits, command.get("wait").asLong(), TimeUnit.MILLISECONDS);
        semaphore.acquire(permits);
        return true;
      case "release":
        semaphore.release(permits);
        return null;
      case "available":
        return semaphore.availablePermits();
      case "count":
        return count(command, () -> {
          semaphore.acquire();
          return semaphore;
        }, RSemaphore::release);
      default:
        throw unknown(command);
    }
  }

  private static Object permit(RPermitExpirableSemaphore semaphore, JsonNode command) throws Exception {
    int permits = command.path("permits").asInt(1);
    long lease = command.path("lease").asLong(-1);
    switch (command.path("action").asText()) {
      case "setPermits":
        return semaphore.trySetPermits(permits);
      case "acquire":
        if (command.has("wait")) return semaphore.tryAcquire(command.get("wait").asLong(), lease, TimeUnit.MILLISECONDS);
        return lease == -1 ? semaphore.acquire() : semaphore.acquire(lease, TimeUnit.MILLISECONDS);
      case "release":
        return semaphore.tryRelease(command.path("permitId").asText());
      case "leaseTime":
        return semaphore.getLeaseTime(command.path("permitId").asText());
      case "available":
        return semaphore.availablePermits();
      case "acquired":
        return semaphore.acquiredPermits();
      case "count":
        return count(command, semaphore::acquire, semaphore::release);
      default:
        throw unknown(command);
    }
  }

  private static Object latch(RCountDownLatch latch, JsonNode command) throws Exception {
    switch (command.path("action").asText()) {
      case "setCount":
        return latch.trySetCount(command.path("count").asLong());
      case "countDown":
        latch.countDown();
        return null;
      case "getCount":
        return latch.getCount();
      case "await":
        if (command.has("wait")) return latch.await(command.get("wait").asLong(), TimeUnit.MILLISECONDS);
        latch.await();
        return true;
      default:
        throw unknown(command);
    }
  }

  /** Increments the counter at "port" as often as "times" says, each time within a section of its own. */
  private static <A> Object count(JsonNode command, Callable<A> enter, Consumer<A> leave) throws Exception {
    try (Counter counter = new Counter(command.path("port").asInt())) {
      for (int left = command.path("times").asInt(); left > 0; left--) {
        A entered = enter.call();
        try {
          counter.increment();
        } finally {
          leave.accept(entered);
        }
      }
    }
    return null;
  }

  private static IllegalArgumentException unknown(JsonNode command) {
    return new IllegalArgumentException("action: " + command.path("action").asText());
  }
}
