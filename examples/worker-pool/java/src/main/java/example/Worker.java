package example;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** A worker that prints labels, one by one: NAME PRINTER LABELS. The same as worker.ts, in Java. */
public final class Worker {
  public static void main(String[] args) throws Exception {
    String name = args[0];
    URI printer = URI.create(args[1]);
    int labels = Integer.parseInt(args[2]);

    Config config = new Config();
    String url = System.getenv().getOrDefault("REDIS_URL", "redis://localhost:6379");
    config.useSingleServer().setAddress(url);
    RedissonClient redisson = Redisson.create(config);
    HttpClient http = HttpClient.newHttpClient();
    try {
      RCountDownLatch everybodyIsHere = redisson.getCountDownLatch("label-printer:workers");
      everybodyIsHere.countDown();
      everybodyIsHere.await();
      RLock turn = redisson.getFairLock("label-printer");
      for (int label = 1; label <= labels; label++) {
        turn.lock();
        try {
          HttpRequest request = HttpRequest.newBuilder(printer)
              .POST(HttpRequest.BodyPublishers.ofString(name + " " + label))
              .build();
          HttpResponse<Void> response = http.send(request, HttpResponse.BodyHandlers.discarding());
          if (response.statusCode() != 200) {
            throw new IllegalStateException("the printer says " + response.statusCode());
          }
        } finally {
          turn.unlock();
        }
      }
    } finally {
      redisson.shutdown();
    }
  }
}
