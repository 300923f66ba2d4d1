/** Makes a line of a log: when, and what. */
export const stamped = (at: number, text: string): string => `${new Date(at).toISOString()} ${text}\n`;
