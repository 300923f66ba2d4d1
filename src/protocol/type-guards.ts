/** Returns whether a value is a string. */
export const isText = (value: unknown): value is string => typeof value === 'string';

/** Returns whether a value is a number, also `NaN`. */
export const isNumber = (value: unknown): value is number => typeof value === 'number';
