package effectredislock.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Workers that contend for one name. */
final class Contention {
    static final class Party {
        String kind;
        int workers;
    }

    static final class Order {
        String name;
        List<Party> parties;
        /** The permits, for a semaphore. */
        int permits;
        /** The number of sections of all workers together, and of each. */
        int sectionsInAll = Integer.MAX_VALUE;
        int sectionsEach = Integer.MAX_VALUE;
        /** No request is sent later. */
        long limitMillis;
        /** Absent: the section ends after yielding once. */
        Integer sectionMillis;
        /** Absent: the worker sends its next request at once. */
        Integer thinkMillis;
    }

    /** Times in milliseconds, on the clock that all processes of the machine share. */
    static final class Section {
        String kind;
        int worker;
        double askedAt;
        double enteredAt;
        double leftAt;
    }

    static List<Section> run(Library library, Order order) throws InterruptedException {
        double until = now() + order.limitMillis;
        AtomicInteger begun = new AtomicInteger();
        List<Party> partyOf = new ArrayList<>();
        for (Party party : order.parties) {
            for (int i = 0; i < party.workers; i++) partyOf.add(party);
        }
        List<List<Section>> sections = new ArrayList<>();
        for (int i = 0; i < partyOf.size(); i++) sections.add(new ArrayList<>());
        Workers.run(partyOf.size(), worker -> {
            String kind = partyOf.get(worker).kind;
            Guarding guarding = library.guarding(kind, order.name, order.permits);
            for (int done = 0; done < order.sectionsEach; done++) {
                double askedAt = now();
                if (askedAt > until || begun.getAndIncrement() >= order.sectionsInAll) return;
                guarding.acquire();
                Section section = new Section();
                section.kind = kind;
                section.worker = worker;
                section.askedAt = askedAt;
                section.enteredAt = now();
                pause(order.sectionMillis);
                section.leftAt = now();
                guarding.release();
                sections.get(worker).add(section);
                if (order.thinkMillis != null) pause(order.thinkMillis);
            }
        });
        List<Section> all = new ArrayList<>();
        for (List<Section> ofWorker : sections) all.addAll(ofWorker);
        return all;
    }

    private static void pause(Integer millis) throws InterruptedException {
        if (millis == null || millis == 0) Thread.yield();
        else Thread.sleep(millis);
    }

    private static double now() {
        return System.nanoTime() / 1e6;
    }

    private Contention() {}
}
