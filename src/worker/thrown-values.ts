/**
 * Numbers for the values that functions of the user threw on the main thread. Such a value stays there, so that the subscriber
 * receives the same object. Its number crosses to the worker and back.
 */
export interface ThrownValues {
  /** Returns the number of a value that stays on its thread; `undefined` if the value can be cloned. */
  readonly idOf: (thrown: unknown) => number | undefined;
  /** Returns the value of a number. */
  readonly byId: (id: number, message: string | undefined) => unknown;
}

/** A failure can have one such value as its cause, and so can the previous failure: older values are not needed. */
const maxStored = 64;

/** Stores the values on the main thread. */
export const storedValues = (): ThrownValues => {
  const stored = new Map<number, unknown>();
  let newest = 0;
  return {
    idOf: (thrown) => {
      newest += 1;
      stored.set(newest, thrown);
      stored.delete(newest - maxStored);
      return newest;
    },
    byId: (id, message) => (stored.has(id) ? stored.get(id) : new Error(message)),
  };
};

const idOf = Symbol('id');

/** Creates placeholders for the values in the worker: an error with the same message for an error, otherwise an object. */
export const placeholders: ThrownValues = {
  idOf: (thrown) => (Object(thrown) as { readonly [idOf]?: number })[idOf],
  byId: (id, message) => Object.assign(message === undefined ? {} : new Error(message), { [idOf]: id }),
};
