/**
 * Rules that are broken on purpose, as replacements in the sources. The simulation finds violations of each. `seed`: a run that does.
 *
 * @type {readonly { readonly name: string, readonly file: string, readonly find: string, readonly replacement: string, readonly seed: number }[]}
 */
export const mutants = [
  {
    name: 'no credit for a displaced owner that was opening',
    file: 'election/cluster-key.ts',
    find: `displaced.phase === 'opening' ? withCredit(credits, displaced.gen) : credits`,
    replacement: 'credits',
    seed: 100,
  },
  {
    name: 'no credit for a handshake without an answer',
    file: 'election/own.ts',
    find: 'if (isUnanswered) addCredit(turn, owner);',
    replacement: '',
    seed: 59,
  },
  {
    name: 'no credit for a handshake of an owner that leaves',
    file: 'election/own.ts',
    find: `if (owner.phase === 'opening' && owner.isSent && !owner.isEvicted) addCredit(turn, owner);`,
    replacement: '',
    seed: 54,
  },
  {
    name: 'no credit for an owner whose claim the store has lost',
    file: 'election/own.ts',
    find: 'addCredit(turn, owner, gen);',
    replacement: '',
    seed: 47458,
  },
  {
    name: 'a credit is voided although the handshake was sent',
    file: 'election/own.ts',
    find: 'if (!isOpen && !owner.isSent) turn.effects.push',
    replacement: 'turn.effects.push',
    seed: 118,
  },
  {
    name: 'no compare-and-set before opening again',
    file: 'election/own.ts',
    find: `write(turn, 'evicted', key, owner.revision);`,
    replacement: `if (!isExplained) return write(turn, 'evicted', key, owner.revision);
      changeOwn(turn, { isEvicted: false, credits, agedAt: clock.now });
      changeOwn(turn, { written: { phase: 'opening', at: clock.now, wall: clock.wall } });
      turn.effects.push({ type: 'open' });`,
    seed: 34240,
  },
  {
    name: 'every 4001 is by another client',
    file: 'election/own.ts',
    find: 'if (state.gen > owner.gen) return displaced(turn, undefined);',
    replacement: `turn.effects.push({ type: 'stop-notice' });
      return fail(turn, true);`,
    seed: 3,
  },
  {
    name: 'every 4001 is by a replica',
    file: 'election/own.ts',
    find: 'const isExplained = credit !== undefined && evictionsOf(turn, owner).length <= maxEvictions;',
    replacement: 'const isExplained = true;',
    seed: 4,
  },
  {
    name: 'an owner without a lease explains an eviction',
    file: 'election/own.ts',
    find: 'if (owner.written === undefined || clock.now - owner.written.at >= state.settings.leaseMs) return abandon(turn);',
    replacement: '',
    seed: 398,
  },
  {
    name: 'a store that has lost data explains an eviction',
    file: 'election/own.ts',
    find: 'if (owner.isEvicted && (isOlder || gen > owner.gen || owner.later !== undefined)) return abandon(turn);',
    replacement: '',
    seed: 165,
  },
  {
    name: 'a generation number that was used again is not noticed',
    file: 'election/follow.ts',
    find: `(seen.gen === gen && known.gen === gen && seen.owner !== '' && known.owner !== seen.owner)`,
    replacement: 'false',
    seed: 208,
  },
  {
    name: 'an owner does not claim again when it learns of a later generation',
    file: 'election/step.ts',
    find: 'if (isNewest) return;',
    replacement: 'return;',
    seed: 19,
  },
  {
    name: 'a stop does not end the other replicas',
    file: 'election/orient.ts',
    find: `if (key.phase === 'stopped') return fail(turn, true);`,
    replacement: `if (key.phase === 'stopped') return planClaim(turn);`,
    seed: 3,
  },
  {
    name: 'followers accept earlier generations',
    file: 'follower/follower.ts',
    find: 'if (message.gen < gen) return;',
    replacement: 'if (message.gen < gen) return begin(message);',
    seed: 46,
  },
  {
    name: 'followers do not report missed frames',
    file: 'follower/follower.ts',
    find: 'const hasMissed = message.sequence > sequence;',
    replacement: 'const hasMissed = false;',
    seed: 3,
  },
  {
    name: 'followers count events as missed frames',
    file: 'follower/follower.ts',
    find: 'const missed = message.frames - frames;',
    replacement: 'const missed = message.sequence - sequence;',
    seed: 118,
  },
  {
    name: 'an owner publishes no gap after an outage of the service',
    file: 'messages/publisher.ts',
    find: 'if (!hasOpened) return undefined;',
    replacement: `if (!hasOpened || event.type === 'gap') return undefined;`,
    seed: 9,
  },
  {
    name: 'no wait for the lease of an owner that does not answer',
    file: 'election/follow.ts',
    find: 'known.revisionAt + settings.leaseMs',
    replacement: 'known.revisionAt',
    seed: 911,
  },
  {
    name: 'no check of the lease before a handshake',
    file: 'election/own.ts',
    find: `if (last?.phase !== 'opening') return false;`,
    replacement: `if (clock.now >= 0) return last?.phase === 'opening';
      if (last === undefined) return false;`,
    seed: 264,
  },
  {
    name: 'claims without a wait after the owner has no responder',
    file: 'election/follow.ts',
    find: 'const isGone = count >= 2 &&',
    replacement: 'const isGone = count >= 1 &&',
    seed: 9402,
  },
];
