/**
 * Numbers for the values that functions of the user threw on the main thread. The main thread stores the value and sends only its number
 * to the worker. The worker sends the number back, so the subscriber receives the same object. A `TradeFeedError` is sent as data instead.
 */
export interface ThrownValues {
  /** Returns the number of a value that the main thread stores; `undefined` for a value that the worker threw. */
  readonly idOf: (thrown: unknown) => number | undefined;
  /** Returns the value of a number. */
  readonly byId: (id: number, message: string | undefined) => unknown;
}

/** Only a failure and its previous failure can have a stored value as their cause, so older values are not needed. */
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

/** Represents the values in the worker by placeholders: an error with the same message for an error, otherwise an object. */
export const placeholders: ThrownValues = {
  idOf: (thrown) => (Object(thrown) as { readonly [idOf]?: number })[idOf],
  byId: (id, message) => Object.assign(message === undefined ? {} : new Error(message), { [idOf]: id }),
};
