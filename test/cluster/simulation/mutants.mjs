import { mutantsIn } from '../../support/simulation.mjs';

// Rules that are broken on purpose, each as a patch of a file, by its path from src/cluster/. The simulation finds violations of each. `seed`: a run that
// does. `faults`: what is rare is found only in a run with these faults, without a foreign client.
const patches = `
# no credit for a displaced owner that was opening
election/following.ts, seed 15
-displaced.phase === 'opening' ? [{ gen: displaced.gen, leftMs: timing.creditMs }] : []
+[]
# no credit for a handshake without an answer
election/owning.ts, seed 118
-if (isUnanswered) addCredit(draft, state);
# no credit for a handshake of an owner that leaves
election/owning.ts, seed 176
-if (state.name !== 'evicted' && phaseOf(state) === 'opening' && state.isSent) addCredit(draft, state);
# no credit for an owner whose claim the store has lost
election/owning.ts, seed 381, faults: engine fails over, suspend
-addCredit(draft, state, gen);
# a credit is voided although the handshake was sent
election/owning.ts, seed 139
-if (!isOpen && !state.isSent) draft.effects.push
+draft.effects.push
# no compare-and-set before opening again
election/owning.ts, seed 2635, faults: late handshakes, suspend, black hole
-draft.write('evicted', keyOf(draft, state, isExplained ? { credits } : stopped), state.revision);
+if (!isExplained) return draft.write('evicted', keyOf(draft, state, stopped), state.revision);
+state.name = 'opening';
+state.credits = lasting(credits, now);
+state.lease = { phase: 'opening', at: now, wall: clock.wall };
+draft.effects.push({ type: 'open' });
# a credit is voided although a handshake before the last connection can arrive
election/owning.ts, seed 54301
-state.isSent &&= canArrive;
+state.isSent &&= phaseOf(state) === 'opening' && canArrive;
# every 4001 is by another client
election/owning.ts, seed 6
-state.name = 'evicted';
+draft.effects.push({ type: 'stop-notice' });
+return draft.fail(true);
# every 4001 is by a replica
election/owning.ts, seed 4
-const isExplained = credit !== undefined && remaining(state.evictions, now).length <= timing.maxEvictions;
+const isExplained = true;
# an owner without a lease explains an eviction
election/owning.ts, seed 389
-if (now - state.lease.at >= leaseMs) return abandon(draft, state);
# a store that has lost data explains an eviction
election/owning.ts, seed 916
-if (state.name === 'evicted' && (hasLostData || later > 0)) return abandon(draft, state);
# a generation number that was used again is not noticed
election/draft.ts, seed 292
-((known.gen === gen && isOther(known)) || isOther(followed))
+false
# an owner does not claim again when it learns of a later generation
election/owning.ts, seed 1090
-if (!isNewest) suspectLater(state, gen);
# a stop does not end the other replicas
election/following.ts, seed 4
-if (key.phase === 'stopped') return draft.fail(other === undefined, other);
+if (key.phase === 'stopped') return planClaim(draft, state);
# followers accept earlier generations
follower.ts, seed 28
-    return gen < own || (gen === own && (owner !== this.#owner.id || this.#owner.hasEnded));
+    return false;
# followers do not report missed frames
follower.ts, seed 35
-    if (have && !isNext) this.#miss(message, have);
-    else if
+    if
# followers count events as missed frames
follower.ts, seed 27
-missedBetween(since, this.#place) : undefined;
+this.#place.offset - since.offset : undefined;
# an owner publishes no gap after an outage of the service
publisher.ts, seed 18
-    return this.#hasOpened ||
+    return (this.#hasOpened && event.type !== 'gap') ||
# a connection is complete at once on the Free plan
../protocol/feed-state.ts, seed 38
-until: completeFrom ?? at + freeDelayMs,
+until: completeFrom ?? at,
# the gap of an owner ends when the connection opens
follower.ts, seed 9
-    // A connection that was replaced while it settled: its outage goes on.
+    this.#endOutage(at, undefined);
# a connection that an owner opens settles for no other replica
publisher.ts, seed 52
-  if (event.type === 'opened') return event.completeFrom ?? 'auto';
+  if (event.type === 'opened') return undefined;
# a gap of missed messages ends while the connection settles
follower.ts, seed 65
-    if (settling === undefined && !isEvent(message, 'gap')) this.#endOutage(at, settling);
+    if (!isEvent(message, 'gap')) this.#endOutage(at, undefined);
# a connection that settles is not replaced
follower.ts, seed 1070815
-(isComplete(have) || !hasConnection(message) || isEvent(message, 'opened'))
+(isComplete(have) || isEvent(message, 'opened'))
# a new owner forgets an outage that the previous one did not end
follower.ts, seed 12
-    const { from = Math.max(complete, this.#opened.from), since } = this.#outage ?? {};
+    const [from, since] = [Math.max(complete, at), undefined];
# the gap of an owner is reported beside that of the outage
follower.ts, seed 1
-    else this.#endOutage(to, settling);
-  }
+    else {
+      this.#endOutage(to, settling);
+      this.#emit({ type: 'gap', from: to - 1, to, durationMs: 1, failure: replacedAt(to) });
+    }
+  }
# time passes while an owner that was replaced has no connection
follower.ts, seed 2647
-    return phase === 'open' && isKnown;
+    return true;
# a replica that returns does not say that the connection is complete
follower.ts, seed 18
-{ completeFrom: settling ?? at };
+typeof settling === 'number' && { completeFrom: settling };
# a gap of a connection that settles has a number of frames
follower.ts, seed 2941
-since && settling === undefined ? missedBetween
+since ? missedBetween
# a gap of missed messages has no number
follower.ts, seed 35
-since && settling === undefined ? missedBetween(since, this.#place) : undefined;
+undefined;
# the end of an owner that stood still proves that nothing is missing
publisher.ts, seed 1179
-phase !== 'open' || this.#timeAt(clock) - at > timing.silentMs
+phase !== 'open'
# the end of an owner that was replaced before it has begun proves that nothing is missing
publisher.ts, seed 307777
-phase !== 'open' || this.#timeAt(clock) - at > timing.silentMs
+this.#timeAt(clock) - at > timing.silentMs
# a new owner begins before the end of the previous one
publisher.ts, seed 33
-    return waiting.isOffered ? waiting.since + leaseMs : heardAt + timing.silentMs;
+    return -Infinity;
# an outage of an owner that was replaced begins when it opens again
follower.ts, seed 38
-    if (have && wasOpen && isReplaced(message, have))
+    if (false as boolean)
# no wait for the lease of an owner that does not answer
election/following.ts, seed 225
-Math.max(known.revisionAt + settings.leaseMs
+Math.max(known.revisionAt
# no check of the lease before a handshake
election/owning.ts, seed 485
-return lease.phase === 'opening' && passedMs < leaseMs - marginMs && jumpMs <= marginMs;
+return lease.phase === 'opening';
# an owner does not write its key again when it cannot be read
election/owning.ts, seed 64, faults: key damaged, kill, pause, hand-over
-if (result.type === 'unreadable') return confirmed(draft, state, { key: undefined, revision: result.revision });
# a replica that has heard an owner still waits for a key that can be read
election/following.ts, seed 771, faults: key damaged, pause, kill
-nextRead: undefined, isUnreadable: false }
+nextRead: undefined }
# followers do not correct the time of a new owner
follower.ts, seed 79
-    if (have.gen !== gen) return Math.max(0, have.at - at);
+    if (have.gen !== gen) return 0;
# the frames of a late message are as late as its first one
follower.ts, seed 202080
-Math.min(frame.receivedAt, latest)
+frame.receivedAt
# a new owner does not continue the time
publisher.ts, seed 1
-    const skewMs = time === undefined ? this.#shiftMs : time - clock;
+    const skewMs = 0;
# no began: a reader goes on where it is, although the line has less
../protocol/place.ts, seed 715
-return follows(next, nextOffset(have, next), Math.max(0, have.offset - next.began));
+return follows(next, have.offset, 0);
# a fenced writer sends its messages again
../log/line-writer.ts, seed 18
-if (own && end && end.gen > own.gen)
+if (own && end && end.gen > own.gen + 100)
# a reader emits what it reads, although it has it
follower.ts, seed 9
-    if (answer.type === 'old' ||
+    if ((answer.type === 'old' && have?.gen !== message.gen) ||
# a writer forgets what the store has refused
../log/line-writer.ts, seed 45
-    this.#state = 'writing';
+    this.#state = 'writing';
+    this.#messages.clear();
# a reader does not read what is missing
../log/line-reader.ts, seed 9
-    if (store && isLater)
+    if (store && isLater && message.count > 1_000)
# a generation that only the store of the line knows is not followed by a higher one
election/owning.ts, seed 31245
-  fenced: (_, state, { gen }) => {
-    if (gen > state.gen) suspectLater(state, gen);
+  fenced: () => {
# a line that was replaced is read from where a live message is
../log/line-reader.ts, seed 45414
-return isLater && (
+return isLater && message.count > 1_000 && (
`;

export const mutants = mutantsIn('cluster', patches);
