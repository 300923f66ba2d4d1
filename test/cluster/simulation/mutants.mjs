import { mutantsIn } from '../../support/simulation.mjs';

// Rules that are broken on purpose, each as a patch of a file, by its path from src/cluster/. The simulation finds violations of each. `seed`: a run that
// does. `faults`: what is rare is found only in a run with these faults, without a foreign client.
const patches = `
# no credit for a displaced owner that was opening
election/following.ts, seed 15
-displaced.phase === 'opening' ? [{ gen: displaced.gen, leftMs: timing.creditMs }] : []
+[]
# no credit for a handshake without an answer
election/owning.ts, seed 59
-if (isUnanswered) addCredit(draft, state);
# no credit for a handshake of an owner that leaves
election/owning.ts, seed 208
-if (state.name !== 'evicted' && phaseOf(state) === 'opening' && state.isSent) addCredit(draft, state);
# no credit for an owner whose claim the store has lost
election/owning.ts, seed 2210, faults: engine fails over, suspend
-addCredit(draft, state, gen);
# a credit is voided although the handshake was sent
election/owning.ts, seed 12
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
election/owning.ts, seed 296
-if (now - state.lease.at >= leaseMs) return abandon(draft, state);
# a store that has lost data explains an eviction
election/owning.ts, seed 105
-if (state.name === 'evicted' && (hasLostData || later > 0)) return abandon(draft, state);
# a generation number that was used again is not noticed
election/draft.ts, seed 418
-((known.gen === gen && isOther(known)) || isOther(followed))
+false
# a replica follows an owner whose frames it drops
election/draft.ts, seed 56311, faults: late handshakes, pause, link refused, engine fails over, store rolled back
-|| isOther(followed))
+)
# an owner does not claim again when it learns of a later generation
election/owning.ts, seed 876
-if (!isNewest) suspectLater(state, gen);
# a stop does not end the other replicas
election/following.ts, seed 4
-if (key.phase === 'stopped') return draft.fail(other === undefined, other);
+if (key.phase === 'stopped') return planClaim(draft, state);
# followers accept earlier generations
follower.ts, seed 98
-else if (message.gen === this.#gen && message.owner === this.#owner) {
+else if (message.gen < this.#gen) this.#begin(message, now);
+else {
# followers do not report missed frames
follower.ts, seed 9
-const hasMissed = this.#isAway !== undefined || message.sequence > this.#sequence;
+const hasMissed = this.#isAway !== undefined;
# followers count events as missed frames
follower.ts, seed 438
-    const frames = this.#frames;
+    const frames = message.frames - (message.sequence - this.#sequence);
# an owner publishes no gap after an outage of the service
publisher.ts, seed 207
-if (!this.#hasOpened) return
+if (event.type === 'gap') return undefined;
+if (!this.#hasOpened) return
# a connection is complete at once on the Free plan
../protocol/feed-state.ts, seed 27
-until: completeFrom ?? at + freeDelayMs,
+until: completeFrom ?? at,
# the gap of a hand-over ends when the connection opens
follower.ts, seed 32
-    if (settling === undefined) this.#endOutage(at);
+    this.#endOutage(at);
# a connection that an owner opens settles for no other replica
publisher.ts, seed 2
-  if (event.type === 'opened') return event.completeFrom ?? 'auto';
+  if (event.type === 'opened') return undefined;
# a gap of missed messages ends while the connection settles
follower.ts, seed 260
-    if (settling === undefined) this.#endOutage(this.#lastAt);
+    this.#endOutage(this.#lastAt);
# the gap of a first owner is dropped, and an outage with it
follower.ts, seed 146
-      this.#isFirst = false;
-      this.#beginOutage(Math.min(failure.endedAt, at), failure, undefined);
+
# a new owner forgets an outage that the previous one did not end
follower.ts, seed 12
-    this.#outage = { from: this.#outage?.from ?? from, failure };
+    this.#outage = { from, failure };
# the gap of an owner is reported beside that of the outage
follower.ts, seed 1
-    else if (outage === undefined) this.#emitGapFrom(event);
-    else this.#endOutage(event.to);
+    else {
+      this.#endOutage(event.to);
+      this.#emitGapFrom(event);
+    }
# time passes while an owner that was replaced has no connection
follower.ts, seed 2333
-    return phase === 'open' && (hasMissed
+    return true || (hasMissed
# a replica that returns does not say that the connection is complete
follower.ts, seed 18
-settling !== 'auto' && { completeFrom: settling === undefined ? at : settling + this.#shift };
+typeof settling === 'number' && { completeFrom: settling + this.#shift };
# a gap of the service has a number of frames
follower.ts, seed 334
-settling === undefined ? frames : undefined);
+frames);
# a gap of missed messages has no number
follower.ts, seed 5
-settling === undefined ? frames : undefined);
+undefined);
# the end of an owner that stood still proves that nothing is missing
follower.ts, seed 588
-    if (kind === 'end' && at + this.#shift - this.#lastAt > timing.silentMs) return false;
+
# an outage of an owner that was replaced begins when it opens again
follower.ts, seed 5184
-    else if (wasComplete && this.#outage === undefined) this.#beginOutage(before, replacedAt(before), undefined);
+
# no wait for the lease of an owner that does not answer
election/following.ts, seed 482
-Math.max(known.revisionAt + settings.leaseMs
+Math.max(known.revisionAt
# no check of the lease before a handshake
election/owning.ts, seed 2826
-return lease.phase === 'opening' && passedMs < leaseMs - marginMs && jumpMs <= marginMs;
+return lease.phase === 'opening';
# claims without a wait after the owner has no responder
election/following.ts, seed 1199
-if (state.unanswered < 2 ||
+if (state.unanswered < 1 ||
# an owner does not write its key again when it cannot be read
election/owning.ts, seed 64, faults: key damaged, kill, pause, hand-over
-if (result.type === 'unreadable') return confirmed(draft, state, { key: undefined, revision: result.revision });
# a replica that has heard an owner still waits for a key that can be read
election/following.ts, seed 1641, faults: key damaged, pause, kill
-nextRead: undefined, isUnreadable: false }
+nextRead: undefined }
# followers do not correct the time of a new owner
follower.ts, seed 16
-this.#shift = this.#shiftOf(sentAt, now);
+this.#shift = 0;
`;

export const mutants = mutantsIn('cluster', patches);
