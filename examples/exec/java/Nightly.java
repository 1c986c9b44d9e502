import java.io.IOException;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * A service of which several instances run, each with the same nightly work on a timer of its own, as
 * Spring's {@code @Scheduled(cron = "0 0 1 * * *", zone = "UTC")} makes one. The timer stays; what it
 * fires is {@code matins exec}, and of all instances one does the work.
 *
 * <p>{@code java Nightly.java} serves; {@code java Nightly.java now} fires once, and ends with its code.
 */
public final class Nightly {
    private static final List<String> WORK =
            List.of(env("MATINS", "matins"), "exec", "recon", "--config", env("CONFIG", "recon.yaml"), "--", "./recon.sh");

    /** The body of the scheduled method. */
    static int fire() throws IOException, InterruptedException {
        // The child has this service's environment, MATINS_STORE among it, and writes to its log.
        Process call = new ProcessBuilder(WORK).inheritIO().start();
        Thread stop = new Thread(call::destroy); // SIGTERM: the run is given back when the service stops
        Runtime.getRuntime().addShutdownHook(stop);
        int code = call.waitFor();
        try {
            Runtime.getRuntime().removeShutdownHook(stop);
        } catch (IllegalStateException stopping) {
            return code;
        }
        if (code != 0) {
            System.err.println("recon ended with " + code + (code > 100 && code < 109 ? ", said by matins itself" : ""));
        }
        return code;
    }

    private static void fireQuietly() {
        try {
            fire();
        } catch (IOException e) {
            System.err.println("matins could not be started: " + e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void scheduleNext(ScheduledExecutorService timer) {
        ZonedDateTime now = ZonedDateTime.now(ZoneOffset.UTC);
        ZonedDateTime next = now.toLocalDate().atTime(1, 0).atZone(ZoneOffset.UTC);
        if (!next.isAfter(now)) {
            next = next.plusDays(1);
        }
        timer.schedule(() -> {
            fireQuietly();
            scheduleNext(timer);
        }, Duration.between(now, next).toMillis(), TimeUnit.MILLISECONDS);
    }

    private static String env(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("now")) {
            System.exit(fire());
        }
        scheduleNext(Executors.newSingleThreadScheduledExecutor());
    }
}
