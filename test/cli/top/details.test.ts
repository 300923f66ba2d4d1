import { describe, expect, it } from '@jest/globals';
import { detailsOf } from '../../../src/cli/top/details.js';
import type { Replica, Snapshot } from '../../../src/cli/top/snapshot.js';

const textsOf = (fields: Partial<Snapshot>) => detailsOf({ state: 'live', ...fields }).map(([text]) => text);
const replicaOf = (fields: Partial<Replica>) =>
  textsOf({ cluster: { role: 'following', replica: 'a', owner: undefined, ...fields } });

describe('the details of a row', () => {
  it('name the owner of a cluster only if it is another replica', () => {
    expect(replicaOf({ owner: 'b' })).toEqual(['replica a: following, the owner is b']);
    expect(replicaOf({ role: 'owning', owner: 'a' })).toEqual(['replica a: owning']);
    expect(replicaOf({ role: 'claiming' })).toEqual(['replica a: claiming']);
  });

  it('show the causes of reconnects, the most frequent first, and what was lost', () => {
    const reconnects = { 'server-shutdown': 1, 'access-expired': 3 };
    const stats = { reconnects, lostMs: 1_500, dropped: 2 } as unknown as NonNullable<Snapshot['stats']>;
    expect(textsOf({ stats })).toEqual([
      'reconnects after access-expired (3), server-shutdown (1); 1.5 s without frames; 2 frames dropped',
    ]);
  });
});
