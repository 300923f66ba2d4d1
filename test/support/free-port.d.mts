/** Returns a free port on loopback that the system assigns to no other program. */
export const freePort: () => Promise<number>;
