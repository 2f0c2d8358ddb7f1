//! Meta commands as transcripts, in the form of those of the classic ones; the real memcached must answer them alike.

/// (sent, answered)
pub(crate) const SHARED: &str = r"
    // Retrieval, and what it can tell.
    mg a\nmg a q\nmg none k Oq\nmn\n => EN\nEN knone Oq\nMN\n
    ms a 3 F7 T100\nabc\nmg a\nmg a v\nmg a v f c k Oxy\nmg  a   v \n mg a v\n
        => HD\nHD\nVA 3\nabc\nVA 3 f7 c1 ka Oxy\nabc\nVA 3\nabc\nVA 3\nabc\n
    set a 0 0 1\nx\nmg a v\nms a 1\ny\nget a\nmg a q k\n => STORED\nVA 1\nx\nHD\nVALUE a 0 1\ny\nEND\nHD ka\n
    ms a 1\nx\nmg a T100\ntouch a 0\nmg a T0\nmg none T9\n => HD\nHD\nTOUCHED\nHD\nEN\n
    // Stores.
    ms a 3 c k Oz F5 T0\nabc\nms a 3 C99\nabc\nms b 1 C99 k Oa\nx\nms a 3 C1 c\nxyz\nmg a v\n
        => HD c1 ka Oz\nEX\nNF kb Oa\nHD c2\nVA 3\nxyz\n
    ms a 1 MR\nx\nms a 1 MA\nx\nms a 1 MP\nx\nms a 1 ME\nm\nms a 1 ME\nn\nms a 1 MA F9 c\ny\nms a 1 MP\nw\nms a 1 MR\nz\nms a 1 MS\ny\nmg a v f\n
        => NS\nNS\nNS\nHD\nNS\nHD c2\nHD\nHD\nHD\nVA 1 f0\ny\n
    ms a 1\nx\nms a 1 MP C9\nz\nms a 1 ME C1\nz\nms e 1 ME C1\nz\nms n 1 MR C1\nz\nms a 1 MA C1\nz\nmg a v\n
        => HD\nEX\nNS\nHD\nNF\nHD\nVA 2\nxz\n
    ms a 1 q\nx\nms a 1 q ME\ny\nms a 1 q C9 Oa\ny\nmg a v\nms a 0\n\nmg a v\n => NS\nEX Oa\nVA 1\nx\nHD\nVA 0\n\n
    ms a 1 T-1\nx\nmg a\n => HD\nEN\n
    // Removal.
    md a\nms a 1\nx\nmd a C9\nmd a q k Oq\nmd a k Oq\nmd a q\n => NF\nHD\nEX\nNF ka Oq\nNF\n
    // Numbers.
    ma n\nma n k Oq\nms n 2\n13\nma n v\nma n D5 MI v\nma n M+ D1 v\nma n M- v\nma n MD D100 v k Oq\nmg n v\n
        => NF\nNF kn Oq\nHD\nVA 2\n14\nVA 2\n19\nVA 2\n20\nVA 2\n19\nVA 1 kn Oq\n0\nVA 2\n0 \n
    ms n 1\n5\nma n C9 v\nma n q v\nma n q\nma m q\nma n T30 v\nma n k Oq c\n => HD\nEX\nNF\nVA 1\n8\nHD kn Oq c5\n
    ms a 1\nx\nma a k\nma n Dx\nma n Mx\n
        => HD\nCLIENT_ERROR cannot increment or decrement non-numeric value\nCLIENT_ERROR invalid or duplicate flag\nCLIENT_ERROR invalid mode for ma M token\n
    // Keys that are no words.
    ms YQ== 2 b k c\nhi\nmg YQ== b k v\nmd YQ== b k Oz\nmg a\nmg bm9uZQ== b k\n
        => HD kYQ== b c1\nVA 2 kYQ== b\nhi\nHD kYQ== b Oz\nEN\nEN kbm9uZQ== b\n
    mg a b\nms $$$ 2 b\nhi\nmg YQ b v\nmn\n
        => CLIENT_ERROR error decoding key\nCLIENT_ERROR error decoding key\nCLIENT_ERROR error decoding key\nMN\n
    // Mistakes.
    mg\nmd\nma\nmx\nMG a\n => ERROR\nERROR\nERROR\nERROR\nERROR\n
    mn a\nmg a y\nmg a v v\nmg a Tx\n
        => MN\nCLIENT_ERROR invalid flag\nCLIENT_ERROR duplicate flag\nCLIENT_ERROR bad token in command line format\n
    mg a Oaaaaaaaaaabbbbbbbbbbccccccccccd\nmg a Oaaaaaaaaaabbbbbbbbbbccccccccccde\n
        => EN Oaaaaaaaaaabbbbbbbbbbccccccccccd\nCLIENT_ERROR opaque token too long\n
    ms a\nms a x\nabc\nms a -1\nx\nms a S3\nabc\n
        => CLIENT_ERROR bad command line format\nCLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\n
    ms a 1 MZ\nx\nms a 1 Mset\nx\nms a 3 Fx\nabc\nms a 2 E99\nxx\nmn\n
        => CLIENT_ERROR invalid mode for ms M token\nCLIENT_ERROR incorrect length for M token\nCLIENT_ERROR bad command line format\nCLIENT_ERROR invalid flag\nMN\n
    ms a 3\nabcd\nmn\n => CLIENT_ERROR bad data chunk\nERROR\nMN\n
    mg §x\nmn\n => CLIENT_ERROR bad command line format\nMN\n
";
