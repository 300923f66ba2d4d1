import { describe, expect, it } from '@jest/globals';
import { OverflowError } from '../../../src/operators/bounded/overflow-error.js';

describe('OverflowError', () => {
  const error = new OverflowError('It came too fast', 10, 2_048);

  it('describes what happened, the bounds, and what to do', () => {
    expect(error.message).toBe(
      'It came too fast. The bounds are 10 values and 2048 bytes. Make the consumer faster, raise `capacity` or ' +
        '`capacityBytes`, or choose an `overflow` that drops.',
    );
  });

  it('is an Error with a name and the bounds as fields', () => {
    expect(error).toBeInstanceOf(Error);
    expect({ ...error }).toEqual({ name: 'OverflowError', capacity: 10, capacityBytes: 2_048 });
    expect(String(error)).toMatch(/^OverflowError: It came too fast\./);
    expect(error.stack).toContain('overflow-error.test');
  });
});
