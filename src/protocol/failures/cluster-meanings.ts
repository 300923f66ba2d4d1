import type { Meaning } from './meaning.js';

/** The failures between the replicas of a cluster: the reasons for a gap. */
export const clusterMeanings: Readonly<Record<'behind' | 'away' | 'ownerChanged', Meaning>> = {
  behind: {
    stage: 'stream',
    code: 'cluster-behind',
    verdict: 'renew',
    meaning: 'Messages of the owner did not arrive at this replica.',
    advice: 'If this happens often, look at the network, and at the limits of the engine for slow consumers.',
  },
  away: {
    stage: 'stream',
    code: 'cluster-away',
    verdict: 'renew',
    meaning: 'This replica lost its connection to the engine, so it received no messages of the owner.',
    advice: 'Nothing to do: the replica continues when the engine is back. If it stays away, check the engine.',
  },
  ownerChanged: {
    stage: 'stream',
    code: 'owner-changed',
    verdict: 'renew',
    meaning: 'Another replica owns the connection now.',
    advice: 'Nothing to do: frames between both connections may be missing.',
  },
};
