/* Browsers run no workers of pages that are opened from a folder. There the search runs in a hidden frame, with the few
   functions of a worker that it uses. Material for MkDocs finds such a frame by the name IFrameWorker. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.tell(data);
      this.inner.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => this.load(one)), Promise.resolve());
      this.load(String(url)).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inner.document.createElement("script");
        Object.assign(script, { src: url, onload: resolve, onerror: reject });
        this.inner.document.head.append(script);
      });
    }
    tell(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.inner.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {}
  };
  window.Worker = window.IFrameWorker;
}
