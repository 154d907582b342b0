// Lanes: look at them, set them, pause, resume, drain, clear.
import { pathOf } from "./transport.js";
/** A named limit; `change` also takes a pattern such as `session:*`. */
export class Lane {
    transport;
    name;
    constructor(transport, name) {
        this.transport = transport;
        this.name = name;
    }
    /** How it stands, whether it exists now or not. */
    get(options = {}) {
        return this.transport.read(pathOf("lanes", this.name), options);
    }
    /** Changes settings; what is left out stays. Nothing that runs is ended. */
    change(settings, options = {}) {
        return this.transport.read(pathOf("lanes", this.name), { ...options, method: "PATCH", body: settings });
    }
    /** Nothing starts any more; what runs goes on. */
    pause(options = {}) {
        return this.#gate("pause", options);
    }
    /** A pause or a drain is over. */
    resume(options = {}) {
        return this.#gate("resume", options);
    }
    /** Nothing new is accepted; what is there comes to its end. */
    drain(options = {}) {
        return this.#gate("drain", options);
    }
    /** Cancels what waits; resolves to how many. */
    async clear(options = {}) {
        const path = pathOf("lanes", this.name, "clear");
        return (await this.transport.read(path, { ...options, method: "POST" })).cancelled;
    }
    #gate(what, options) {
        return this.transport.read(pathOf("lanes", this.name, what), { ...options, method: "POST" });
    }
}
